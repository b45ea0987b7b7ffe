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

// Runs it to its end: until it has exited and its standard output is closed by everyone who
// inherited it, as $(command) does; once interrupted or stopped, until it has exited. `output` is
// called with each piece as it comes and is all that keeps any. `error` is the descriptor that its
// standard error goes to.
//
// The command gets a process group of its own. Its standard input is ours, but empty if ours is a
// terminal. SIGINT, SIGTERM and SIGHUP are passed on to the group. When `stop` fires the group gets
// SIGTERM and two seconds later SIGKILL. When this process dies, however, the group gets SIGKILL:
// a command without the heartbeat of its lease must not run beside its successor.
[[nodiscard]] ChildEnd run_child(const std::vector<std::string>& command, Signals& signals,
                                 const std::stop_token& stop,
                                 const std::function<void(std::string_view)>& output,
                                 int error = STDERR_FILENO);

}  // namespace idem::cli
