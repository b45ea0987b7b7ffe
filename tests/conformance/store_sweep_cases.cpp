// StoreContract: sweep, list and stats.
#include <gtest/gtest.h>

#include <map>
#include <set>
#include <string>
#include <vector>

#include "drafts.hpp"
#include "idem/conformance/suites.hpp"
#include "idem/testing/describe.hpp"

namespace idem::conformance {
namespace {

using namespace std::chrono_literals;
using State = Answer::State;

Draft kept_for(Micros keep) {
  Draft draft = processing();
  draft.keep = keep;
  return draft;
}

// The cleaner that deletes live records is the classic way to run a request twice.
TEST_P(StoreContract, SweepRemovesOnlyWhatIsPastItsExpiry) {
  (void)insert({"", "", "just before"}, kept_for(60s + 1ms));
  (void)insert({"", "", "at"}, kept_for(60s));
  (void)insert({"", "", "just after"}, kept_for(60s - 1ms));
  (void)insert({"", "", "lapsed but kept"}, kept_for(24h));
  store_clock().advance(60s);
  expect_count(store().sweep(100).value(), 2);
  EXPECT_EQ(load({"", "", "just before"}).state, State::stands);
  EXPECT_EQ(load({"", "", "at"}).state, State::absent);
  EXPECT_EQ(load({"", "", "just after"}).state, State::absent);
  EXPECT_EQ(load({"", "", "lapsed but kept"}).state, State::stands);
  EXPECT_EQ(store().sweep(100).value(), 0u);
}

TEST_P(StoreContract, SweepKeepsToItsLimit) {
  std::vector<std::string> keys;
  for (int i = 0; i < 95; ++i) keys.push_back("k" + std::to_string(i));
  std::vector<Insert> ops;
  for (const auto& key : keys) ops.push_back({{"", "", key}, kept_for(1s), {}});
  store().insert(ops);
  store_clock().advance(1s);
  std::vector<std::uint64_t> steps;
  for (int i = 0; i < 6; ++i) steps.push_back(store().sweep(20).value());
  if (!frees_by_itself()) {
    EXPECT_EQ(steps, (std::vector<std::uint64_t>{20, 20, 20, 20, 15, 0}));
  }
  for (const std::uint64_t step : steps) EXPECT_LE(step, 20u);
  EXPECT_EQ(store().stats().value().records(), 0u);
}

TEST_P(StoreContract, ARenewedRecordIsNotSwept) {
  const Record first = insert({"", "", "k"}, kept_for(60s)).held;
  store_clock().advance(59s);
  const Answer renewed = replace({"", "", "k"}, first.version, renewal(first));
  ASSERT_EQ(renewed.state, State::written);
  store_clock().advance(10s);
  EXPECT_EQ(store().sweep(100).value(), 0u);
  EXPECT_EQ(held({"", "", "k"}), renewed.held);
}

// A record that ends sooner than planned must go sooner, too.
TEST_P(StoreContract, AShortenedRecordIsSweptAtItsNewTime) {
  const Record first = insert({"", "", "k"}, kept_for(24h)).held;
  Draft done = success(first, "r");
  done.keep = 1s;
  ASSERT_EQ(replace({"", "", "k"}, first.version, done).state, State::written);
  store_clock().advance(1s);
  expect_count(store().sweep(100).value(), 1);
  EXPECT_EQ(load({"", "", "k"}).state, State::absent);
}

TEST_P(StoreContract, ASweptKeyIsFree) {
  (void)insert({"", "", "k"}, kept_for(1s));
  store_clock().advance(1s);
  expect_count(store().sweep(1).value(), 1);
  EXPECT_EQ(insert({"", "", "k"}, processing(2)).state, State::written);
  EXPECT_EQ(store().sweep(1).value(), 0u);
}

TEST_P(StoreContract, AMassExpiryIsSweptWhole) {
  std::vector<std::string> keys;
  for (int i = 0; i < 3000; ++i) keys.push_back("k" + std::to_string(i));
  std::vector<Insert> ops;
  for (const auto& key : keys) ops.push_back({{"", "", key}, kept_for(1s), {}});
  store().insert(ops);
  (void)insert({"", "", "stays"}, processing());
  store_clock().advance(365 * 24h / 1000);
  std::uint64_t removed = 0;
  while (const std::uint64_t step = store().sweep(500).value()) removed += step;
  expect_count(removed, 3000);
  EXPECT_EQ(store().stats().value().records(), 1u);
}

std::map<Key, Record> all_pages(IdempotencyStore& store, ListQuery query) {
  std::map<Key, Record> found;
  do {
    Page page = store.list(query).value();
    for (Listed& item : page.items) {
      EXPECT_FALSE(found.contains(item.key)) << testing::describe(item.key) << " came twice";
      found.emplace(std::move(item.key), std::move(item.record));
    }
    query.cursor = page.cursor;
  } while (!query.cursor.empty());
  return found;
}

TEST_P(StoreContract, ListShowsEachRecordOnceOverAllPages) {
  std::map<Key, Record> expected;
  for (int i = 0; i < 57; ++i) {
    const Key key("t" + std::to_string(i % 3), "b" + std::to_string(i % 2),
                  "key-" + std::to_string(i));
    expected[key] = insert(key, processing()).held;
  }
  for (const std::size_t limit :
       {std::size_t{1}, std::size_t{10}, std::size_t{57}, std::size_t{1000}}) {
    ListQuery query;
    query.limit = limit;
    const auto found = all_pages(store(), query);
    EXPECT_TRUE(found == expected) << "pages of " << limit << " gave " << found.size();
  }
  ListQuery query;
  query.limit = 10;
  EXPECT_EQ(store().list(query).value().items.size(), 10u);
  EXPECT_EQ(store().list(query).value().now, store_clock().now());
}

// A page is a place, not a count: what went before it does not shift it.
TEST_P(StoreContract, ListSurvivesRecordsThatGoMeanwhile) {
  std::map<Key, Record> expected;
  for (int i = 0; i < 40; ++i) {
    const Key key("key-" + std::to_string(i));
    expected[key] = insert(key, processing()).held;
  }
  ListQuery query;
  query.limit = 10;
  const Page first = store().list(query).value();
  std::set<Key> seen;
  for (const Listed& item : first.items) {
    seen.insert(item.key);
    ASSERT_EQ(remove(item.key, item.record.version).state, State::written);
  }
  query.cursor = first.cursor;
  for (const auto& [key, record] : all_pages(store(), query)) {
    EXPECT_TRUE(seen.insert(key).second);
  }
  EXPECT_EQ(seen.size(), expected.size());
}

TEST_P(StoreContract, ListFiltersByStatusAndScope) {
  const Record done = insert({"t1", "pay", "done"}, processing()).held;
  (void)replace({"t1", "pay", "done"}, done.version, success(done, "r"));
  (void)insert({"t1", "pay", "live"}, processing());
  (void)insert({"t2", "pay", "live"}, processing());
  (void)insert({"t1", "", "live"}, processing());
  const auto count = [&](auto&& set) {
    ListQuery query;
    set(query);
    return all_pages(store(), query).size();
  };
  EXPECT_EQ(count([](ListQuery&) {}), 4u);
  EXPECT_EQ(count([](ListQuery& q) { q.status = Status::success; }), 1u);
  EXPECT_EQ(count([](ListQuery& q) { q.status = Status::processing; }), 3u);
  EXPECT_EQ(count([](ListQuery& q) { q.status = Status::failed; }), 0u);
  EXPECT_EQ(count([](ListQuery& q) { q.tenant = "t1"; }), 3u);
  EXPECT_EQ(count([](ListQuery& q) { q.biz_type = "pay"; }), 3u);
  EXPECT_EQ(count([](ListQuery& q) { q.biz_type = ""; }), 1u);
  EXPECT_EQ(count([](ListQuery& q) {
              q.tenant = "t1";
              q.biz_type = "pay";
              q.status = Status::processing;
            }),
            1u);
}

TEST_P(StoreContract, ListOfLapsedCountsFromTheLastClaimOrRenewal) {
  (void)insert({"", "", "silent"}, processing());
  const Record renewed = insert({"", "", "renewed"}, processing()).held;
  Draft short_lease = processing();
  short_lease.lease = 1s;
  (void)insert({"", "", "later"}, short_lease);
  const Record done = insert({"", "", "done"}, processing()).held;
  (void)replace({"", "", "done"}, done.version, success(done, "r"));
  store_clock().advance(29s);
  (void)replace({"", "", "renewed"}, renewed.version, renewal(renewed));
  const auto lapsed = [&](Micros ago) {
    ListQuery query;
    query.lapsed_for = ago;
    std::set<std::string> keys;
    for (const auto& [key, record] : all_pages(store(), query)) keys.insert(key.key);
    return keys;
  };
  EXPECT_EQ(lapsed(29s), (std::set<std::string>{"later"}));
  EXPECT_EQ(lapsed(30s), (std::set<std::string>{}));
  store_clock().advance(1s);
  EXPECT_EQ(lapsed(30s), (std::set<std::string>{"later", "silent"})) << "30 s: over, as equality";
  EXPECT_EQ(lapsed(30s + 1ms), (std::set<std::string>{}));
  store_clock().advance(29s);
  EXPECT_EQ(lapsed(30s), (std::set<std::string>{"later", "renewed", "silent"}));
}

TEST_P(StoreContract, ListShowsNothingExpired) {
  (void)insert({"", "", "short"}, kept_for(1s));
  (void)insert({"", "", "long"}, kept_for(1s + 1ms));
  store_clock().advance(1s);
  const auto found = all_pages(store(), {});
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found.begin()->first.key, "long");
}

TEST_P(StoreContract, StatsCountByStoredStatus) {
  EXPECT_EQ(store().stats().value().records(), 0u);
  const Record a = insert({"", "", "a"}, processing()).held;
  const Record b = insert({"", "", "b"}, processing()).held;
  (void)insert({"", "", "c"}, kept_for(1s));
  (void)replace({"", "", "a"}, a.version, success(a, "r"));
  Draft failed = success(b, "why");
  failed.status = Status::failed;
  failed.fail_kind = FailKind::final;
  (void)replace({"", "", "b"}, b.version, failed);
  StoreStats stats = store().stats().value();
  EXPECT_EQ(stats.processing, 1u);
  EXPECT_EQ(stats.success, 1u);
  EXPECT_EQ(stats.failed, 1u);
  EXPECT_EQ(stats.expired, 0u);
  EXPECT_GT(stats.bytes, 0u);
  store_clock().advance(1s);
  stats = store().stats().value();
  expect_count(stats.expired, 1);
  expect_count(stats.records(), 3);
  expect_count(store().sweep(10).value(), 1);
  stats = store().stats().value();
  EXPECT_EQ(stats.expired, 0u);
  EXPECT_EQ(stats.records(), 2u);
}

}  // namespace
}  // namespace idem::conformance
