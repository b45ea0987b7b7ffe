// How long a batch may still take, over all its round trips.
#pragma once

#include "idem/clock.hpp"

namespace idem::mysql {

// By the machine's clock, whatever clock the store was given: networks know no virtual time.
class Budget {
 public:
  explicit Budget(Micros length) : until_(system_clock().now() + length) {}
  [[nodiscard]] Micros left() const { return until_ - system_clock().now(); }
  [[nodiscard]] bool over() const { return left() <= Micros(0); }

 private:
  Time until_;
};

}  // namespace idem::mysql
