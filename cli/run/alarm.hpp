// A descriptor that becomes readable after a while. The time that a machine sleeps counts, too: so
// do the leases in a store.
//
// Not thread safe. Async-signal-safe.
#pragma once

#include <sys/timerfd.h>

#include <algorithm>
#include <cstdint>

#include "descriptor.hpp"
#include "idem/time.hpp"

namespace idem::cli {

class Alarm {
 public:
  [[nodiscard]] bool works() const { return timer_.open(); }
  [[nodiscard]] int descriptor() const { return timer_.get(); }

  // From now on; replaces what was set before. At once, if it is zero or less.
  void set(Micros after) {
    after = std::max(after, Micros(1));  // zero would disarm it
    const auto whole = std::chrono::floor<std::chrono::seconds>(after);
    itimerspec when{};
    when.it_value.tv_sec = whole.count();
    when.it_value.tv_nsec = std::chrono::nanoseconds(after - whole).count();
    timerfd_settime(timer_.get(), 0, &when, nullptr);
  }

  // Readable no more, until it is set again.
  void hear() {
    std::uint64_t count = 0;
    [[maybe_unused]] const ssize_t got = ::read(timer_.get(), &count, sizeof count);
  }

 private:
  Descriptor timer_{timerfd_create(CLOCK_BOOTTIME, TFD_CLOEXEC | TFD_NONBLOCK)};
};

}  // namespace idem::cli
