// What may be said about a handful of rounds: medians, and how sure they are. Pure.
//
// No assumption about the distribution is made: rounds on a shared machine are not normal.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <vector>

namespace idem::bench {

// Fewer rounds carry no interval, and no claim that one store is faster than another.
inline constexpr std::size_t kRoundsForInterval = 6;

struct Interval {
  double low = 0;
  double high = 0;
  friend bool operator==(const Interval&, const Interval&) = default;
};

struct Summary {
  std::size_t rounds = 0;
  double median = 0;
  double min = 0;
  double max = 0;
  std::optional<Interval> ci95;  // of the median; none below kRoundsForInterval rounds
};

// All zero for no samples.
[[nodiscard]] Summary summarize(std::span<const double> samples);

// The interval of order statistics that holds the median with at least 95 %: [x(k), x(n+1-k)] for
// the largest k with P(Binomial(n, 1/2) < k) <= 2.5 %. Six samples: the whole range (96.9 %).
[[nodiscard]] std::optional<Interval> median_interval(std::vector<double> samples);

// Two-sided p-value of the Mann-Whitney rank test, exact (ties share their mean rank and make it
// slightly conservative). 1 if either sample is empty. At most 100 samples each.
[[nodiscard]] double rank_test(std::span<const double> a, std::span<const double> b);

// Two-sided p-value of Wilcoxon's signed rank test (1945) that paired differences are as often and
// as far above zero as below, exact: equal sizes share their mean rank, zeros are left out. 1 if
// nothing is left. At most 100 differences.
[[nodiscard]] double signed_rank_test(std::span<const double> differences);

}  // namespace idem::bench
