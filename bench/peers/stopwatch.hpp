// The race's own measures: wall time, processor ticks, what other processes took, resident memory.
#pragma once

#include <cstddef>
#include <cstdint>

namespace idem::bench {

class Stopwatch {
 public:
  [[nodiscard]] static std::int64_t now();  // steady, ns
  [[nodiscard]] static std::uint64_t ticks();
  [[nodiscard]] static std::int64_t nanos(std::uint64_t ticks);
};

class CpuWatch {
 public:
  CpuWatch();
  // Since it was made: busy cores of the machine that were not this process.
  [[nodiscard]] double other_cores() const;

 private:
  std::int64_t begin_;
  double machine_;
  double mine_;
};

// Of this process, after malloc has given free pages back to the system.
[[nodiscard]] std::size_t settled_resident_bytes();
// The most it ever was, keys and pool and all.
[[nodiscard]] std::size_t peak_resident_bytes();

}  // namespace idem::bench
