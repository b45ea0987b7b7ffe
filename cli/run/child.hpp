// One supervised command: its standard output passed on, signals passed to it, its whole process
// group ended when it must stop or when we are killed or stopped.
//
// Linux. Not thread safe; to be used by the main thread.
#pragma once

#include <unistd.h>

#include <functional>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

#include "idem/clock.hpp"
#include "outlet.hpp"
#include "signals.hpp"

namespace idem::cli {

struct ChildEnd {
  bool started = false;
  std::string error;     // not started: why
  bool missing = false;  // not started: there is no such command
  bool late = false;     // not started: its lease was or may have been over by then
  int status = 0;        // its exit status; 128 + signal if a signal ended it
  int interruption = 0;  // the signal that was passed on to it, if any
  bool stopped = false;  // it was ended because `stop` fired, or its guard thought that it must
};

struct ChildOutput {
  std::function<void(std::string_view)> seen;  // each piece of standard output as it comes
  Outlet* pass_on = nullptr;                   // where it goes on to, if anywhere
  int error = STDERR_FILENO;                   // where standard error goes
};

// The lease that a command needs.
struct ChildLease {
  Micros length;
  std::function<Time()> safe_until;  // by the system clock: then `stop` fires, unless it has moved
};

struct Stopping {
  std::stop_token token;
  Micros grace = std::chrono::seconds(2);  // between SIGTERM and SIGKILL
  std::optional<ChildLease> lease = {};
};

// Runs it to its end: until it has exited, its standard output is closed by everyone who inherited
// it, as $(command) does, and is passed on. Once it was interrupted or stopped: until its process
// group is empty; then something may be left in `pass_on`. A reader that does not go on stops the
// command's writing, but neither the signals nor `stop`.
//
// The command gets a process group of its own, and a guard before it begins. Its standard input is
// ours, but empty if ours is a terminal. SIGINT, SIGTERM and SIGHUP are passed on to the group, and
// the command takes its time; when it has exited, whoever is left in its group gets `grace`, and
// then SIGKILL. When `stop` fires the group gets SIGTERM and `grace` later SIGKILL. Where we
// cannot, the guard does that before the lease's end. When this process dies the group gets
// SIGKILL.
//
// What the command leaves behind becomes ours and is reaped until we end.
[[nodiscard]] ChildEnd run_child(const std::vector<std::string>& command, Signals& signals,
                                 const Stopping& stop, const ChildOutput& output);

}  // namespace idem::cli
