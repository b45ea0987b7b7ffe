// The store's time for one batch: read once, and again if a record turns out to be younger.
#pragma once

#include "idem/clock.hpp"

namespace idem::memory {

class Moment {
 public:
  explicit Moment(const Clock& clock) : clock_(&clock), now_(clock.now()) {}
  [[nodiscard]] Time now() const { return now_; }
  [[nodiscard]] Time not_before(Time written) {
    if (now_ < written) [[unlikely]]
      now_ = again(*clock_);
    return now_;
  }

 private:
  [[nodiscard, gnu::noinline, gnu::cold]] static Time again(const Clock& clock) {
    return clock.now();
  }

  const Clock* clock_;
  Time now_;
};

}  // namespace idem::memory
