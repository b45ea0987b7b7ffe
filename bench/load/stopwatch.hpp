// Nanoseconds for measuring: the one place of the benchmark that reads a clock itself.
//
// idem::Clock counts microseconds and may be virtual; a claim in memory takes less than one, and a
// measurement is of the machine. Nothing but measurements may use this.
#pragma once

#include <cstdint>
#include <ctime>

#include "idem/time.hpp"

namespace idem::bench {

using Nanos = std::int64_t;

[[nodiscard]] constexpr Nanos nanos(Micros d) noexcept { return d.count() * 1000; }

// Monotonic. About 25 ns a call.
[[nodiscard]] inline Nanos stopwatch() noexcept {
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC, &now);
  return Nanos{now.tv_sec} * 1'000'000'000 + now.tv_nsec;
}

// What the calling thread has used of a processor so far.
[[nodiscard]] inline Nanos thread_cpu() noexcept {
  timespec used{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &used);
  return Nanos{used.tv_sec} * 1'000'000'000 + used.tv_nsec;
}

}  // namespace idem::bench
