#include "load/plan.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>

#include "load/payload.hpp"
#include "load/requests.hpp"

namespace idem::bench {
namespace {

Workload workload(const char* keys) {
  Workload made;
  made.keys = parse_key_choice(keys).value();
  made.operations = 20'000;
  return made;
}

TEST(Plan, B42_SameSeedSamePlanOtherSeedOtherPlan) {
  for (const char* keys : {"unique", "hot:64", "zipf:1000"}) {
    Workload w = workload(keys);
    w.duplicates = 0.2;
    w.crashes = 0.05;
    const std::string hash = plan_hash(make_plan(w));
    EXPECT_EQ(plan_hash(make_plan(w)), hash) << keys;
    w.seed = 2;
    EXPECT_NE(plan_hash(make_plan(w)), hash) << keys;
  }
}

// Results of different builds and machines are compared by this hash: it must never drift.
TEST(Plan, HashIsTheSameInEveryBuild) {
  Workload w = workload("hot:64");
  w.duplicates = 0.2;
  w.operations = 1000;
  EXPECT_EQ(plan_hash(make_plan(w)),
            "e32241518643154ce4e89dc01c31faa5564cc46ab989807fc85b5549a19b3b44");
}

TEST(Plan, UniqueWithoutDuplicatesNamesEveryKeyOnce) {
  const Plan plan = make_plan(workload("unique"));
  std::set<std::uint32_t> seen;
  for (const Operation& operation : plan.operations) seen.insert(operation.key);
  EXPECT_EQ(seen.size(), plan.operations.size());
  EXPECT_EQ(plan.keys, plan.operations.size());
}

TEST(Plan, SharesOfDuplicatesAndCrashesAreAsAsked) {
  Workload w = workload("unique");
  w.duplicates = 0.3;
  w.crashes = 0.1;
  const Plan plan = make_plan(w);
  const auto crashes = std::count_if(plan.operations.begin(), plan.operations.end(),
                                     [](const Operation& op) { return op.crash; });
  EXPECT_NEAR(static_cast<double>(plan.keys) / w.operations, 0.7, 0.02);
  EXPECT_NEAR(static_cast<double>(crashes) / w.operations, 0.1, 0.01);
}

TEST(Plan, ZipfPrefersItsFirstKeysByTheStatedSkew) {
  const Plan plan = make_plan(workload("zipf:1000:1.0"));
  std::map<std::uint32_t, int> counts;
  for (const Operation& operation : plan.operations) {
    ASSERT_LT(operation.key, 1000U);
    ++counts[operation.key];
  }
  // 1 / H(1000) = 0.1336 of all operations, half of it for the second key.
  EXPECT_NEAR(counts[0] / 20'000.0, 0.1336, 0.01);
  EXPECT_NEAR(counts[1] / 20'000.0, 0.0668, 0.01);
}

TEST(Plan, HotUsesItsKeysEvenly) {
  const Plan plan = make_plan(workload("hot:4"));
  std::map<std::uint32_t, int> counts;
  for (const Operation& operation : plan.operations) ++counts[operation.key];
  EXPECT_EQ(counts.size(), 4U);
  for (const auto& [key, count] : counts) EXPECT_NEAR(count, 5000, 300) << key;
}

TEST(KeyChoice, ReadsWhatItWritesAndRefusesTheRest) {
  for (const char* text : {"unique", "hot:1", "hot:64", "zipf:1000:0.99", "zipf:5:1.2"})
    EXPECT_EQ(to_string(parse_key_choice(text).value()), text);
  EXPECT_EQ(to_string(parse_key_choice("zipf:10").value()), "zipf:10:0.99");
  for (const char* text : {"", "Unique", "unique:3", "hot", "hot:", "hot:0", "hot:-1", "hot:1x",
                           "zipf", "zipf:10:0", "zipf:10:x", "zipf:10:1:2", "hot:99999999999"})
    EXPECT_FALSE(parse_key_choice(text).has_value()) << text;
}

TEST(WorkloadCheck, NamesWhatIsOutOfRange) {
  Workload w;
  EXPECT_TRUE(check_workload(w).has_value());
  w.payload = kPayloadMin - 1;
  EXPECT_THAT(check_workload(w).error().message, ::testing::HasSubstr("payload"));
  w = {};
  w.duplicates = 1;
  EXPECT_THAT(check_workload(w).error().message, ::testing::HasSubstr("duplicates"));
  w = {};
  w.crashes = -0.1;
  EXPECT_THAT(check_workload(w).error().message, ::testing::HasSubstr("crashes"));
  w = {};
  w.operations = 0;
  EXPECT_THAT(check_workload(w).error().message, ::testing::HasSubstr("operations"));
}

TEST(Requests, AreValidDistinctAndSeeded) {
  Requests requests(1000, 1);
  requests.set_scope("r1");
  std::set<std::string> keys;
  for (std::uint32_t i = 0; i < requests.size(); ++i) {
    EXPECT_TRUE(check_key(requests[i].key).has_value());
    EXPECT_EQ(requests[i].key.tenant, "r1");
    EXPECT_EQ(requests[i].key.key.size(), 36U);
    keys.insert(requests[i].key.key);
  }
  EXPECT_EQ(keys.size(), 1000U);
  EXPECT_EQ(Requests(3, 1)[2].key.key, requests[2].key.key);
  EXPECT_NE(Requests(3, 2)[2].key.key, requests[2].key.key);
}

// A replay that differs in any byte must be noticed.
TEST(Payload, EveryByteOfAResultIsProved) {
  const Payload payload(64, 1);
  std::string result;
  payload.write(7, 1234, result);
  ASSERT_EQ(result.size(), 64U);
  EXPECT_EQ(payload.fence_of(7, result), 1234U);
  EXPECT_EQ(payload.fence_of(8, result), std::nullopt);
  for (std::size_t i = 16; i < result.size(); ++i) {
    std::string changed = result;
    changed[i] = static_cast<char>(changed[i] ^ 1);
    EXPECT_EQ(payload.fence_of(7, changed), std::nullopt) << i;
  }
  EXPECT_EQ(payload.fence_of(7, result.substr(0, 63)), std::nullopt);
  EXPECT_EQ(payload.fence_of(7, result + "x"), std::nullopt);
  EXPECT_EQ(payload.fence_of(7, ""), std::nullopt);
}

}  // namespace
}  // namespace idem::bench
