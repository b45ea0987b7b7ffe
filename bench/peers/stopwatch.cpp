#include "peers/stopwatch.hpp"

#include <jemalloc/jemalloc.h>
#include <sys/resource.h>
#include <unistd.h>
#include <x86intrin.h>

#include <chrono>
#include <fstream>
#include <string>

namespace idem::bench {
namespace {

double seconds_of(const timeval& t) {
  return static_cast<double>(t.tv_sec) + static_cast<double>(t.tv_usec) * 1e-6;
}

double my_seconds() {
  rusage used{};
  ::getrusage(RUSAGE_SELF, &used);
  return seconds_of(used.ru_utime) + seconds_of(used.ru_stime);
}

// Everything but idle and waiting for disks; /proc/stat counts in clock ticks.
double machine_seconds() {
  std::ifstream stat("/proc/stat");
  std::string cpu;
  stat >> cpu;
  double busy = 0;
  for (int field = 0; field < 8; ++field) {
    double ticks = 0;
    stat >> ticks;
    if (field != 3 && field != 4) busy += ticks;
  }
  return busy / static_cast<double>(::sysconf(_SC_CLK_TCK));
}

// Nanoseconds per tick, over a fiftieth of a second.
double calibrate() {
  const std::int64_t begin = Stopwatch::now();
  const std::uint64_t ticks = Stopwatch::ticks();
  while (Stopwatch::now() - begin < 20'000'000) {
  }
  return static_cast<double>(Stopwatch::now() - begin) /
         static_cast<double>(Stopwatch::ticks() - ticks);
}

}  // namespace

std::int64_t Stopwatch::now() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

std::uint64_t Stopwatch::ticks() { return __rdtsc(); }

std::int64_t Stopwatch::nanos(std::uint64_t ticks) {
  static const double kNanosPerTick = calibrate();
  return static_cast<std::int64_t>(static_cast<double>(ticks) * kNanosPerTick);
}

CpuWatch::CpuWatch() : begin_(Stopwatch::now()), machine_(machine_seconds()), mine_(my_seconds()) {}

double CpuWatch::other_cores() const {
  const double elapsed = static_cast<double>(Stopwatch::now() - begin_) * 1e-9;
  const double others = (machine_seconds() - machine_) - (my_seconds() - mine_);
  return others > 0 ? others / elapsed : 0;
}

std::size_t peak_resident_bytes() {
  rusage used{};
  ::getrusage(RUSAGE_SELF, &used);
  return static_cast<std::size_t>(used.ru_maxrss) * 1024;
}

std::size_t settled_resident_bytes() {
  const std::string purge = "arena." + std::to_string(MALLCTL_ARENAS_ALL) + ".purge";
  ::mallctl(purge.c_str(), nullptr, nullptr, nullptr, 0);
  std::size_t size = 0;
  std::size_t resident = 0;
  std::ifstream("/proc/self/statm") >> size >> resident;
  return resident * static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
}

}  // namespace idem::bench
