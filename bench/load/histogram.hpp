// A histogram of latencies: 128 buckets to each power of two, so a quantile is at most 0.4 % off.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "load/stopwatch.hpp"

namespace idem::bench {

// Not thread safe: one to a client, merged afterwards. Takes 37 KB from the first record on.
class Histogram {
 public:
  // Longer than 73 minutes counts as 73 minutes in the buckets, exactly in max().
  void record(Nanos value);
  void merge(const Histogram& other);

  [[nodiscard]] std::uint64_t count() const { return count_; }
  // Exact. 0 if empty.
  [[nodiscard]] Nanos min() const { return count_ == 0 ? 0 : min_; }
  [[nodiscard]] Nanos max() const { return max_; }
  [[nodiscard]] double mean() const;
  // Nearest rank: the smallest value that at least q * count() values do not exceed; 0 < q <= 1.
  // nullopt if empty.
  [[nodiscard]] std::optional<Nanos> quantile(double q) const;

 private:
  std::vector<std::uint64_t> buckets_;
  std::uint64_t count_ = 0;
  double sum_ = 0;
  Nanos min_ = 0;
  Nanos max_ = 0;
};

}  // namespace idem::bench
