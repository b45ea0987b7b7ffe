#include "load/compare.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>

namespace idem::bench {
namespace {

using ::testing::HasSubstr;

Json document(const std::vector<double>& rates) {
  Report report;
  report.plan_hash = "p";
  Row row;
  row.store = "sqlite";
  row.clients = 8;
  row.rates = rates;
  report.rows.push_back(row);
  return to_json(report);
}

std::vector<double> rounds_around(double median, double spread, std::uint64_t seed) {
  std::mt19937_64 random(seed);
  std::normal_distribution<double> noise(0, spread);
  std::vector<double> rates(7);
  for (double& rate : rates) rate = median * (1 + noise(random));
  return rates;
}

Comparison only_row(const Json& before, const Json& after) {
  return compare(before, after).value().at(0);
}

// The promise of the two directions: equal builds are not told apart, a fifth less is found.
TEST(Compare, B39_B45_EqualSourcesAreTheSameInNineOfTenAndATwentyPercentLossIsFound) {
  int same = 0;
  int found = 0;
  constexpr int kPairs = 200;
  for (std::uint64_t pair = 0; pair < kPairs; ++pair) {
    const auto before = document(rounds_around(1000, 0.03, 2 * pair));
    const auto equal = document(rounds_around(1000, 0.03, 2 * pair + 1));
    const auto slower = document(rounds_around(800, 0.03, 2 * pair + 1));
    same += only_row(before, equal).verdict == Verdict::same ? 1 : 0;
    found += only_row(before, slower).verdict == Verdict::slower ? 1 : 0;
  }
  EXPECT_GE(same, kPairs * 9 / 10);
  EXPECT_GE(found, kPairs * 95 / 100);
}

TEST(Compare, TellsDirectionAndSize) {
  const auto low = document(rounds_around(1000, 0.01, 1));
  const auto high = document(rounds_around(1500, 0.01, 2));
  EXPECT_EQ(only_row(low, high).verdict, Verdict::faster);
  EXPECT_NEAR(only_row(low, high).change, 0.5, 0.05);
  EXPECT_EQ(only_row(high, low).verdict, Verdict::slower);
  EXPECT_EQ(only_row(low, low).verdict, Verdict::same);
}

TEST(Compare, FewRoundsAndMissingRowsGiveNoVerdict) {
  const auto few = document({1000, 1001, 1002, 1003, 1004});
  const auto many = document(rounds_around(500, 0.01, 1));
  EXPECT_EQ(only_row(few, many).verdict, Verdict::unknown);
  EXPECT_THAT(only_row(few, many).reason, HasSubstr("fewer than 6"));
  Json other = many;
  other["rows"][0]["clients"] = 1;
  EXPECT_THAT(only_row(many, other).reason, HasSubstr("only in one"));
  other = many;
  other["rows"][0]["void"] = true;
  EXPECT_EQ(only_row(many, other).reason, "void");
}

TEST(Compare, RefusesWhatCannotBeCompared) {
  const auto good = document(rounds_around(500, 0.01, 1));
  Json other = good;
  other["plan"]["hash"] = "q";
  EXPECT_THAT(compare(good, other).error().message, HasSubstr("different plans"));
  other = good;
  other["workload"]["payload_bytes"] = 9;
  EXPECT_THAT(compare(good, other).error().message, HasSubstr("payload_bytes differs"));
  other = good;
  other["schema"] = "idem.bench/2";
  EXPECT_EQ(compare(good, other).error().code, errc::invalid_argument);
  other = good;
  other.erase("rows");
  EXPECT_THAT(compare(good, other).error().message, HasSubstr("damaged"));
  EXPECT_EQ(compare(Json(3), good).error().code, errc::invalid_argument);
}

}  // namespace
}  // namespace idem::bench
