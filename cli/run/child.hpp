// One supervised command: its standard output passed on, signals passed to it, its
// whole process group ended when it must stop or when we are killed.
//
// Linux. Not thread safe; to be used by the main thread.
#pragma once

#include <unistd.h>

#include <functional>
#include <stop_token>
#include <string>
#include <vector>

#include "idem/time.hpp"
#include "pass_on.hpp"

namespace idem::cli {

// SIGINT, SIGTERM, SIGHUP and SIGCHLD, taken from a descriptor instead of by handlers. Make it
// before any other thread exists: threads inherit the mask.
class Signals {
 public:
  Signals();
  Signals(const Signals&) = delete;
  Signals& operator=(const Signals&) = delete;
  ~Signals();

  [[nodiscard]] int descriptor() const { return descriptor_; }
  // The next pending signal, 0 if there is none.
  [[nodiscard]] int take();
  // The last signal taken that asks to end; 0 if there was none. Takes what is pending.
  [[nodiscard]] int interruption();

 private:
  int descriptor_ = -1;
  int interruption_ = 0;
};

struct ChildEnd {
  bool started = false;
  std::string error;     // not started: why
  bool missing = false;  // not started: there is no such command
  int status = 0;        // its exit status; 128 + signal if a signal ended it
  int interruption = 0;  // the signal that was passed on to it, if any
  bool stopped = false;  // it was ended because `stop` fired
};

struct ChildOutput {
  std::function<void(std::string_view)> seen;  // each piece of standard output as it comes
  PassOn* pass_on = nullptr;                   // where it goes on to, if anywhere
  int error = STDERR_FILENO;                   // where standard error goes
};

struct Stopping {
  std::stop_token token;
  Micros grace = std::chrono::seconds(2);  // between SIGTERM and SIGKILL
};

// Runs it to its end: until it has exited, its standard output is closed by everyone who inherited
// it, as $(command) does, and is passed on; once interrupted or killed, until it has exited: then
// something may be left in `pass_on`. A reader that does not go on stops the command's writing, but
// neither the signals nor `stop`.
//
// The command gets a process group of its own. Its standard input is ours, but empty if ours is a
// terminal. SIGINT, SIGTERM and SIGHUP are passed on to the group. When `stop` fires the group gets
// SIGTERM and `grace` later SIGKILL. When this process dies, however, the group gets SIGKILL: a
// command without the heartbeat of its lease must not run beside its successor.
[[nodiscard]] ChildEnd run_child(const std::vector<std::string>& command, Signals& signals,
                                 const Stopping& stop, const ChildOutput& output);

}  // namespace idem::cli
