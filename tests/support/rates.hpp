// For programs that measure rates beside each other, rounds of rows in turn: what they print.
#pragma once

#include <sys/resource.h>
#include <sys/types.h>
#include <unistd.h>

#include <atomic>
#include <cstddef>
#include <cstdio>
#include <fstream>
#include <string>
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

// Processor time in µs. On a machine that others use, too, it says more than a rate.
struct CpuTime {
  double ours = 0;    // of this process and the children that have ended
  double server = 0;  // to 10 ms
};

inline CpuTime cpu_time(pid_t server) {
  CpuTime time;
  for (const auto who : {RUSAGE_SELF, RUSAGE_CHILDREN}) {
    rusage used{};
    ::getrusage(who, &used);
    for (const timeval& part : {used.ru_utime, used.ru_stime}) {
      time.ours += static_cast<double>(part.tv_sec) * 1e6 + static_cast<double>(part.tv_usec);
    }
  }
  std::ifstream stat("/proc/" + std::to_string(server) + "/stat");
  std::string field;
  for (int i = 1; i <= 15 && stat >> field; ++i) {
    if (i >= 14) time.server += std::stod(field);  // utime, stime
  }
  time.server *= 1e6 / static_cast<double>(::sysconf(_SC_CLK_TCK));
  return time;
}

struct Row {
  const char* name;
  std::vector<double> rates{};   // by round
  std::vector<double> ours{};    // by round: µs of processor time per call, here
  std::vector<double> server{};  // and there

  // A round of so many calls per second; `before`: when it began.
  void add(double rate, double calls, const CpuTime& before, const CpuTime& after) {
    rates.push_back(rate);
    ours.push_back((after.ours - before.ours) / calls);
    server.push_back((after.server - before.server) / calls);
  }
};

// A row that did not run is left out.
inline void print(const Row& row) {
  if (row.rates.empty()) return;
  const bench::Summary rates = bench::summarize(row.rates);
  std::printf("%-17s median %9.0f/s   min %9.0f   max %9.0f", row.name, rates.median, rates.min,
              rates.max);
  if (!row.ours.empty()) {
    std::printf("   us of processor time: %5.1f here, %5.1f server",
                bench::summarize(row.ours).median, bench::summarize(row.server).median);
  }
  std::printf("\n");
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
