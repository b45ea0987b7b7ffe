// A process that outlives us and ends the command where we cannot: when we were killed, when we
// were stopped, or when we are too slow to keep the lease. A command without the heartbeat of its
// lease must not run beside its successor. (Death signals alone reach the command itself, not its
// children.)
//
// It is told the safe deadline of the lease whenever that moves. When the deadline has passed
// without a word the command's group gets SIGTERM, and SIGKILL before the lease's end. When we die
// it gets SIGKILL at once.
//
// Linux. Not thread safe.
#pragma once

#include <sys/types.h>

#include "descriptor.hpp"
#include "idem/clock.hpp"

namespace idem::cli {

class Guard {
 public:
  Guard(Clock& clock, Micros margin) : clock_(clock), margin_(margin) {}
  Guard(const Guard&) = delete;
  Guard& operator=(const Guard&) = delete;
  ~Guard() { dismiss(); }

  // To be called when `group` exists and does nothing yet. True: it stands, and nothing that kills
  // or stops us, alone or with our group, harms it. False: errno says why.
  // margin: of the lease, from the safe deadline to its end.
  [[nodiscard]] bool start(pid_t group, Time safe_until);

  void tell(Time safe_until);
  // The group has been asked to end: what is left for the guard is SIGKILL.
  void tell_asked();

  // Readable when it has acted, or is no more. Then call acted().
  [[nodiscard]] int descriptor() const { return line_.get(); }
  // Whether it has ended the group because no word came.
  [[nodiscard]] bool acted();

  // Who was reaped: if it was the guard (somebody killed it), another one is started.
  void reaped(pid_t pid);

  // It is no more, and does nothing any more.
  void dismiss();

 private:
  Clock& clock_;
  const Micros margin_;
  pid_t group_ = -1;
  Time told_{};
  pid_t pid_ = -1;
  Descriptor line_;  // both ways
  bool acted_ = false;
};

}  // namespace idem::cli
