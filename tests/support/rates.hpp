// For programs that measure rates beside each other, rounds of rows in turn: what they print.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdio>
#include <thread>
#include <vector>

#include "idem/clock.hpp"
#include "load/statistics.hpp"

namespace idem::testing {

// Times one row of a round.
class Timer {
 public:
  explicit Timer(Micros length) : begin_(system_clock().now()), end_(begin_ + length) {}
  [[nodiscard]] bool over() const { return system_clock().now() >= end_; }
  // Per second, since the timer was made.
  [[nodiscard]] double rate(std::size_t count) const {
    return static_cast<double>(count) * 1e6 /
           static_cast<double>((system_clock().now() - begin_).count());
  }

 private:
  Time begin_, end_;
};

// So many threads call `work(thread)` until the timer is over. It returns how much it did as it was
// asked, and 0 makes the row void: wrong answers are no speed.
template <class Work>
std::size_t count_of(std::size_t callers, const Timer& timer, Work work) {
  std::atomic<std::size_t> count{0}, wrong{0};
  std::vector<std::thread> threads;
  for (std::size_t t = 0; t < callers; ++t) {
    threads.emplace_back([&, t] {
      std::size_t mine = 0;
      while (!timer.over()) {
        const std::size_t done = work(t);
        mine += done;
        if (done == 0) ++wrong;
      }
      count += mine;
    });
  }
  for (std::thread& thread : threads) thread.join();
  if (wrong != 0) std::printf("VOID: %zu wrong answers\n", wrong.load());
  return count;
}

struct Row {
  const char* name;
  std::vector<double> rates{};  // by round
};

// A row that did not run is left out.
inline void print(const Row& row) {
  if (row.rates.empty()) return;
  const bench::Summary rates = bench::summarize(row.rates);
  std::printf("%-17s median %9.0f/s   min %9.0f   max %9.0f\n", row.name, rates.median, rates.min,
              rates.max);
}

// The median of the rounds' own ratios: what disturbs a round disturbs both.
inline void print_ratio(const Row& one, const Row& other) {
  if (one.rates.empty() || other.rates.empty()) return;
  std::vector<double> each;
  for (std::size_t i = 0; i < one.rates.size(); ++i) {
    each.push_back(one.rates[i] / other.rates[i]);
  }
  const bench::Summary ratios = bench::summarize(each);
  std::printf("%-17s / %-17s %.2f   (%.2f to %.2f)\n", one.name, other.name, ratios.median,
              ratios.min, ratios.max);
}

}  // namespace idem::testing
