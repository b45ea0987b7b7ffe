#include "load/compare.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
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
  other["kind"] = "capacity";
  other.erase("plan");  // as the other kinds have none
  EXPECT_EQ(compare(good, other).error().message,
            "the two are of different kinds: 'run' and 'capacity'");
  EXPECT_THAT(compare(other, other).error().message, HasSubstr("only those of idem bench run"));
  other = good;
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

struct Pairs {
  std::vector<Json> before;
  std::vector<Json> after;
};

// Turns on a machine whose speed wanders by `drift` from turn to turn, as shared ones do, and never
// comes back: neighbours are alike, ends are not.
Pairs measured_in_turns(std::size_t pairs, double factor, double drift, std::uint64_t seed) {
  std::mt19937_64 random(seed);
  std::normal_distribution<double> step(0, 1);
  Pairs out;
  double speed = 1000;
  for (std::size_t i = 0; i < pairs; ++i) {
    for (const bool after : {i % 2 == 1, i % 2 == 0}) {
      speed *= std::exp(drift * step(random));
      std::vector<double> rounds(3);
      for (double& rate : rounds) rate = speed * (after ? factor : 1) * (1 + 0.05 * step(random));
      (after ? out.after : out.before).push_back(document(rounds));
    }
  }
  return out;
}

Verdict verdict_of(const Pairs& pairs) {
  return compare_pairs(pairs.before, pairs.after).value().at(0).verdict;
}

// Two runs one after the other would differ by 20 % and more here.
TEST(Compare, B39_B45_PairsFindAFifthOnAMachineThatDriftsAndNothingWhereNothingIs) {
  int same = 0;
  int slower = 0;
  int faster = 0;
  constexpr int kTries = 200;
  for (std::uint64_t seed = 0; seed < kTries; ++seed) {
    same += verdict_of(measured_in_turns(12, 1, 0.05, seed)) == Verdict::same ? 1 : 0;
    slower += verdict_of(measured_in_turns(12, 1 / 1.2, 0.05, seed)) == Verdict::slower ? 1 : 0;
    faster += verdict_of(measured_in_turns(12, 1.2, 0.05, seed)) == Verdict::faster ? 1 : 0;
  }
  EXPECT_GE(same, kTries * 95 / 100);
  EXPECT_GE(slower, kTries * 95 / 100);
  EXPECT_GE(faster, kTries * 95 / 100);
}

TEST(Compare, FewPairsMissingAndVoidRowsGiveNoVerdict) {
  Pairs pairs = measured_in_turns(7, 0.5, 0, 1);
  auto row = compare_pairs(pairs.before, pairs.after).value().at(0);
  EXPECT_EQ(row.verdict, Verdict::unknown);
  EXPECT_THAT(row.reason, HasSubstr("fewer than 8 pairs"));
  pairs = measured_in_turns(8, 0.5, 0, 1);
  EXPECT_EQ(verdict_of(pairs), Verdict::slower);
  pairs.after[3]["rows"][0]["void"] = true;
  EXPECT_EQ(compare_pairs(pairs.before, pairs.after).value().at(0).reason, "void");
  pairs.before[2]["rows"][0]["clients"] = 1;
  EXPECT_THAT(compare_pairs(pairs.before, pairs.after).value().at(0).reason,
              HasSubstr("only in one"));
}

TEST(Compare, PairsOfDifferentLoadsAreRefusedWhereverTheyStand) {
  Pairs pairs = measured_in_turns(8, 1, 0, 1);
  pairs.after[7]["workload"]["payload_bytes"] = 9;
  EXPECT_THAT(compare_pairs(pairs.before, pairs.after).error().message,
              HasSubstr("payload_bytes differs"));
  pairs.after.pop_back();
  EXPECT_EQ(compare_pairs(pairs.before, pairs.after).error().code, errc::invalid_argument);
  EXPECT_EQ(compare_pairs({}, {}).error().code, errc::invalid_argument);
  pairs.before.pop_back();
  pairs.before[0].erase("rows");
  EXPECT_THAT(compare_pairs(pairs.before, pairs.after).error().message, HasSubstr("damaged"));
}

}  // namespace
}  // namespace idem::bench
