// The store's clock: the process's Clock, lifted so that it is never behind what the file has seen.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>

#include "idem/clock.hpp"
#include "idem/record.hpp"

namespace idem::sqlite {

// A floor of time or version as a writer of ours leaves it. A damaged one would carry the store's
// clock beyond every lease and expiry.
[[nodiscard]] inline bool is_floor(std::int64_t value) { return value >= 0 && value < kVersionEnd; }

// Each process of a file has its own clock. The file keeps the largest time ever written (its
// floor); a process that finds the floor ahead of its own clock goes on from the floor. So the
// store's time never goes back, over processes and jumps of the wall clock. Thread safe.
class StoreTime {
 public:
  explicit StoreTime(Clock& clock) : clock_(clock) {}

  [[nodiscard]] Time now() const {
    return clock_.now() + Micros(ahead_.load(std::memory_order_relaxed));
  }

  // The time of something seen together with `floor`, after now() was `seen`.
  Time not_before(Time floor, Time seen) {
    if (floor <= seen) return seen;
    const std::int64_t wanted = (floor - clock_.now()).count();
    std::int64_t ahead = ahead_.load(std::memory_order_relaxed);
    while (ahead < wanted &&
           !ahead_.compare_exchange_weak(ahead, wanted, std::memory_order_relaxed)) {
    }
    return floor;
  }

 private:
  Clock& clock_;
  std::atomic<std::int64_t> ahead_{0};  // µs; a lone value: nothing is published through it
};

}  // namespace idem::sqlite
