// The signals of a process that supervises another one.
#pragma once

#include <signal.h>

#include <array>

namespace idem::cli {

// SIGINT, SIGTERM, SIGHUP and SIGCHLD, taken from a descriptor instead of by handlers. What our
// caller had us ignore (nohup) stays ignored, here and in the command. What would stop us (SIGTSTP,
// SIGTTOU, SIGTTIN) is ignored: it would stop the heartbeat and not the command. Make it before any
// other thread exists: threads inherit the mask.
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

  // Signals act again as they did before: what is printed at the end, to a reader that does not go
  // on, can be interrupted. What is pending acts at once. SIGPIPE stays ignored: a reader that went
  // away does not change the exit status.
  void give_back();
  // In a child that is about to exec: as our caller had them, none blocked. Async-signal-safe.
  void give_to_command() const;

 private:
  struct Held {
    int number;
    void (*during)(int);
    struct sigaction before;
  };
  std::array<Held, 5> held_{{{SIGTSTP, SIG_IGN, {}},
                             {SIGTTOU, SIG_IGN, {}},
                             {SIGTTIN, SIG_IGN, {}},
                             {SIGCHLD, SIG_DFL, {}},  // ignored, children leave no exit status
                             {SIGPIPE, SIG_IGN, {}}}};
  sigset_t mask_before_{};
  bool given_back_ = false;
  int descriptor_ = -1;
  int interruption_ = 0;
};

}  // namespace idem::cli
