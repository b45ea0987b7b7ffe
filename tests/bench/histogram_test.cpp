#include "load/histogram.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>
#include <vector>

namespace idem::bench {
namespace {

// The exact answer, from the sample itself.
Nanos nearest_rank(std::vector<Nanos> sample, double q) {
  std::sort(sample.begin(), sample.end());
  const auto rank = static_cast<std::size_t>(std::ceil(q * static_cast<double>(sample.size())));
  return sample[std::max<std::size_t>(rank, 1) - 1];
}

// Log-normal latencies around 100 us with a tail of seconds, as a store with stalls has them.
std::vector<Nanos> recorded_sample() {
  std::mt19937_64 random(7);
  std::lognormal_distribution<double> usual(std::log(1e5), 1.5);
  std::vector<Nanos> sample;
  for (int i = 0; i < 50'000; ++i) sample.push_back(static_cast<Nanos>(usual(random)));
  for (int i = 0; i < 50; ++i) sample.push_back(1'000'000'000 + i);
  return sample;
}

// A report whose p99 is off by more than a percent lies about small differences.
TEST(Histogram, B38_QuantilesAreWithinOnePercentOfExact) {
  const auto sample = recorded_sample();
  Histogram histogram;
  for (const Nanos value : sample) histogram.record(value);
  for (const double q : {0.001, 0.1, 0.5, 0.9, 0.99, 0.999, 0.9999, 1.0}) {
    const auto exact = static_cast<double>(nearest_rank(sample, q));
    EXPECT_NEAR(static_cast<double>(*histogram.quantile(q)), exact, exact * 0.01) << "q=" << q;
  }
  EXPECT_EQ(histogram.count(), sample.size());
  EXPECT_EQ(histogram.max(), *std::max_element(sample.begin(), sample.end()));
  EXPECT_EQ(histogram.min(), *std::min_element(sample.begin(), sample.end()));
}

TEST(Histogram, EveryPowerOfTwoAndItsNeighboursStayWithinHalfAPercent) {
  for (int bits = 0; bits < 42; ++bits) {
    for (const Nanos off : {-1, 0, 1}) {
      const Nanos value = (Nanos{1} << bits) + off;
      Histogram histogram;
      histogram.record(value);
      histogram.record(value + value / 3);  // else min and max alone would answer
      histogram.record(0);
      const auto found = static_cast<double>(*histogram.quantile(0.5));
      EXPECT_NEAR(found, static_cast<double>(value), static_cast<double>(value) * 0.004) << value;
    }
  }
}

TEST(Histogram, EmptyHasNoQuantileInsteadOfZero) {
  const Histogram empty;
  EXPECT_EQ(empty.quantile(0.5), std::nullopt);
  EXPECT_EQ(empty.count(), 0U);
}

TEST(Histogram, MergedEqualsRecordedTogether) {
  const auto sample = recorded_sample();
  Histogram odd;
  Histogram even;
  Histogram all;
  for (std::size_t i = 0; i < sample.size(); ++i) {
    (i % 2 == 0 ? even : odd).record(sample[i]);
    all.record(sample[i]);
  }
  even.merge(Histogram{});
  even.merge(odd);
  for (const double q : {0.01, 0.5, 0.99}) EXPECT_EQ(even.quantile(q), all.quantile(q));
  EXPECT_EQ(even.count(), all.count());
  EXPECT_EQ(even.min(), all.min());
  EXPECT_EQ(even.max(), all.max());
}

TEST(Histogram, LongerThanTheRangeKeepsItsExactMaximum) {
  Histogram histogram;
  const Nanos day = Nanos{86'400} * 1'000'000'000;
  histogram.record(1);
  histogram.record(day);
  EXPECT_EQ(histogram.max(), day);
  EXPECT_EQ(histogram.quantile(1.0), day);
}

}  // namespace
}  // namespace idem::bench
