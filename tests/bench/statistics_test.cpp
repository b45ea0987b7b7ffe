#include "load/statistics.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <random>

namespace idem::bench {
namespace {

std::vector<double> one_to(std::size_t n) {
  std::vector<double> values(n);
  std::iota(values.begin(), values.end(), 1.0);
  return values;
}

// Five rounds hold the median with 93.75 % at best: no interval may be claimed.
TEST(Statistics, B39_FewerThanSixRoundsCarryNoInterval) {
  for (std::size_t n = 0; n < 6; ++n) EXPECT_EQ(median_interval(one_to(n)), std::nullopt) << n;
  EXPECT_TRUE(median_interval(one_to(6)).has_value());
}

// Ranks as in the published tables of the sign test (n: lower rank for 95 %).
TEST(Statistics, IntervalRanksAreThoseOfTheSignTestTables) {
  const std::pair<std::size_t, double> table[] = {{6, 1},  {7, 1},  {8, 1},  {9, 2},  {10, 2},
                                                  {12, 3}, {15, 4}, {20, 6}, {25, 8}, {50, 18}};
  for (const auto& [n, low] : table) {
    const auto interval = median_interval(one_to(n));
    ASSERT_TRUE(interval.has_value());
    EXPECT_EQ(interval->low, low) << n;
    EXPECT_EQ(interval->high, static_cast<double>(n) + 1 - low) << n;
  }
}

TEST(Statistics, SummaryOfRoundsInAnyOrder) {
  const std::vector<double> rounds{5, 1, 4, 2, 6, 3};
  const Summary summary = summarize(rounds);
  EXPECT_EQ(summary.rounds, 6U);
  EXPECT_EQ(summary.median, 3.5);
  EXPECT_EQ(summary.min, 1);
  EXPECT_EQ(summary.max, 6);
  EXPECT_EQ(summary.ci95, (Interval{1, 6}));
  EXPECT_EQ(summarize({}).rounds, 0U);
}

TEST(Statistics, RankTestMatchesPublishedExactValues) {
  // Completely separated samples: 2 / C(n+m, n).
  const std::vector<double> low{1, 2, 3};
  const std::vector<double> high{10, 11, 12};
  EXPECT_NEAR(rank_test(low, high), 2.0 / 20, 1e-12);
  const std::vector<double> low6 = one_to(6);
  std::vector<double> high6 = one_to(6);
  for (double& x : high6) x += 100;
  EXPECT_NEAR(rank_test(low6, high6), 2.0 / 924, 1e-12);
  // U = 1 of n = m = 3: two of twenty orders at most that extreme on either side.
  EXPECT_NEAR(rank_test(std::vector<double>{1, 2, 4}, std::vector<double>{3, 5, 6}), 4.0 / 20,
              1e-12);
  EXPECT_EQ(rank_test(low6, low6), 1);
  EXPECT_EQ(rank_test({}, low6), 1);
}

// Two runs of the same build must not compare as different more often than promised.
TEST(Statistics, RankTestSaysDifferentForEqualSourcesInAboutFivePercent) {
  std::mt19937_64 random(11);
  std::lognormal_distribution<double> rounds(0, 0.3);
  int different = 0;
  constexpr int kPairs = 2000;
  for (int pair = 0; pair < kPairs; ++pair) {
    std::vector<double> a(7);
    std::vector<double> b(7);
    for (double& x : a) x = rounds(random);
    for (double& x : b) x = rounds(random);
    different += rank_test(a, b) < 0.05 ? 1 : 0;
  }
  EXPECT_LT(different, kPairs * 6 / 100);
  EXPECT_GT(different, kPairs * 1 / 100);
}

// Wilcoxon's table (two-sided): n, rank sum of the rarer sign, and its exact share of the 2^n
// signs.
TEST(Statistics, SignedRankTestMatchesPublishedExactValues) {
  std::vector<double> all_above = one_to(8);
  EXPECT_NEAR(signed_rank_test(all_above), 2.0 / 256, 1e-12);
  all_above[0] = -1;  // the smallest rank is below: sums of 0 and 1 are as extreme
  EXPECT_NEAR(signed_rank_test(all_above), 4.0 / 256, 1e-12);
  all_above[0] = 1;
  all_above[2] = -3;  // sums 0, 1, 2, and 3 in two ways
  EXPECT_NEAR(signed_rank_test(all_above), 10.0 / 256, 1e-12);
  for (double& x : all_above) x = -x;
  EXPECT_NEAR(signed_rank_test(all_above), 10.0 / 256, 1e-12);
}

TEST(Statistics, SignedRankTestSharesRanksAndLeavesZerosOut) {
  EXPECT_EQ(signed_rank_test({}), 1);
  EXPECT_EQ(signed_rank_test(std::vector<double>{0, 0}), 1);
  EXPECT_EQ(signed_rank_test(std::vector<double>{1, -1, 2, -2}), 1);
  EXPECT_NEAR(signed_rank_test(std::vector<double>{0, 1, 1, 1}), 2.0 / 8, 1e-12);
  EXPECT_NEAR(signed_rank_test(one_to(100)), 0, 1e-12);
}

// The share of false alarms is what it promises to be, whatever the spread is.
TEST(Statistics, SignedRankTestKeepsItsPromiseOnPairsThatDoNotDiffer) {
  std::mt19937_64 random(7);
  std::cauchy_distribution<double> noise(0, 1);  // no mean at all
  int alarms = 0;
  constexpr int kTries = 2000;
  for (int i = 0; i < kTries; ++i) {
    std::vector<double> differences(12);
    for (double& difference : differences) difference = noise(random);
    alarms += signed_rank_test(differences) < 0.05 ? 1 : 0;
  }
  EXPECT_LE(alarms, kTries * 7 / 100);
  EXPECT_GE(alarms, kTries * 3 / 100);
}

}  // namespace
}  // namespace idem::bench
