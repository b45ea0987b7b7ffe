#include "load/histogram.hpp"

#include <algorithm>
#include <bit>
#include <cmath>

namespace idem::bench {
namespace {

constexpr int kSubBits = 7;
constexpr std::uint64_t kSubs = std::uint64_t{1} << kSubBits;
constexpr int kValueBits = 42;
constexpr std::uint64_t kValueMax = (std::uint64_t{1} << kValueBits) - 1;
constexpr std::size_t kBuckets = static_cast<std::size_t>(kValueBits - kSubBits + 1) * kSubs;

// Values under 128 have a bucket each; above, the first bit chooses a block of 128 buckets and the
// next seven choose within it.
std::size_t bucket_of(std::uint64_t value) {
  value = std::min(value, kValueMax);
  if (value < kSubs) return value;
  const int shift = static_cast<int>(std::bit_width(value)) - 1 - kSubBits;
  return (static_cast<std::size_t>(shift) + 1) * kSubs + ((value >> shift) & (kSubs - 1));
}

Nanos middle_of(std::size_t bucket) {
  if (bucket < kSubs) return static_cast<Nanos>(bucket);
  const auto shift = static_cast<int>(bucket / kSubs) - 1;
  const std::uint64_t low = (kSubs + bucket % kSubs) << shift;
  return static_cast<Nanos>(low + ((std::uint64_t{1} << shift) - 1) / 2);
}

}  // namespace

void Histogram::record(Nanos value) {
  if (buckets_.empty()) buckets_.resize(kBuckets);
  value = std::max<Nanos>(value, 0);
  ++buckets_[bucket_of(static_cast<std::uint64_t>(value))];
  min_ = count_ == 0 ? value : std::min(min_, value);
  max_ = std::max(max_, value);
  sum_ += static_cast<double>(value);
  ++count_;
}

void Histogram::merge(const Histogram& other) {
  if (other.count_ == 0) return;
  if (buckets_.empty()) buckets_.resize(kBuckets);
  for (std::size_t i = 0; i < kBuckets; ++i) buckets_[i] += other.buckets_[i];
  min_ = count_ == 0 ? other.min_ : std::min(min_, other.min_);
  max_ = std::max(max_, other.max_);
  sum_ += other.sum_;
  count_ += other.count_;
}

double Histogram::mean() const { return count_ == 0 ? 0 : sum_ / static_cast<double>(count_); }

std::optional<Nanos> Histogram::quantile(double q) const {
  if (count_ == 0) return std::nullopt;
  const auto rank = std::max<std::uint64_t>(
      1, static_cast<std::uint64_t>(std::ceil(q * static_cast<double>(count_))));
  if (rank >= count_) return max_;
  std::uint64_t seen = 0;
  for (std::size_t i = 0; i < kBuckets; ++i) {
    seen += buckets_[i];
    if (seen >= rank) return std::clamp(middle_of(i), min_, max_);
  }
  return max_;
}

}  // namespace idem::bench
