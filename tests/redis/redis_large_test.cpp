// Results of megabytes: what walks over all records must not ask for more of them at a time than
// a deadline lets through.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>

#include "idem/service.hpp"
#include "redis_servers.hpp"

namespace idem::testing {
namespace {

constexpr std::size_t kRecords = 40;
constexpr std::size_t kResultBytes = std::size_t{8} << 20;

Key key_of(std::size_t i) { return Key("large-" + std::to_string(i)); }

// The first half finished, the second half claimed and silent; with the results of both.
class RedisLarge : public ::testing::Test {
 protected:
  void fill(std::size_t records) {
    for (std::size_t i = 0; i < records; ++i) {
      Draft draft;
      draft.owner = Owner::random();
      draft.request_hash = Fingerprint::of_bytes("r");
      draft.keep = std::chrono::hours(1);
      draft.status = i < records / 2 ? Status::success : Status::processing;
      draft.lease = Micros(1);
      const std::string result(kResultBytes, static_cast<char>('a' + i % 26));
      draft.result = result;
      const Key key = key_of(i);
      Insert op{key, draft, {}};
      store_->insert({&op, 1});
      ASSERT_EQ(op.answer.state, Answer::State::written) << op.answer.error.message;
    }
  }

  RedisServer server_;
  // With the default deadline.
  std::shared_ptr<RedisStore> store_ = open_redis(server_.url()).value();
};

TEST_F(RedisLarge, AListingReadsThemAll) {
  fill(kRecords);
  std::map<Key, char> seen;
  ListQuery query;
  do {
    const auto page = store_->list(query);
    ASSERT_TRUE(page) << page.error().message;
    for (const Listed& item : page->items) {
      EXPECT_TRUE(seen.emplace(item.key, item.record.result.at(0)).second) << "told twice";
      EXPECT_EQ(item.record.result.size(), kResultBytes);
    }
    query.cursor = page->cursor;
  } while (!query.cursor.empty());
  ASSERT_EQ(seen.size(), kRecords);
  for (std::size_t i = 0; i < kRecords; ++i) {
    EXPECT_EQ(seen.at(key_of(i)), static_cast<char>('a' + i % 26));
  }
}

TEST_F(RedisLarge, ASweepAndTheCountsNeedNoResults) {
  fill(kRecords);
  const auto before = store_->stats();
  ASSERT_TRUE(before) << before.error().message;
  EXPECT_EQ(before->success, kRecords / 2);
  EXPECT_EQ(before->processing, kRecords / 2);
  EXPECT_GE(before->bytes, kRecords * kResultBytes);

  ServiceOptions options;
  options.policy.lease = options.policy.stuck_after = std::chrono::milliseconds(1);
  IdempotencyService service(store_, options);
  const auto swept = service.sweep(kRecords);
  ASSERT_TRUE(swept) << swept.error().message;
  EXPECT_EQ(swept->abandoned, kRecords / 2);
  EXPECT_EQ(store_->stats().value().failed, kRecords / 2);
}

// But a damaged header is told: nobody knows what the filter would have said.
TEST_F(RedisLarge, WhatAFilterLeavesOutIsNotRead) {
  fill(4);
  ListQuery query;
  query.status = Status::failed;
  EXPECT_TRUE(store_->list(query).value().items.empty());
  query.status.reset();
  query.biz_type = "other";
  EXPECT_TRUE(store_->list(query).value().items.empty());

  RawRedis raw(server_.port());
  raw({"SETRANGE", "idem:" + storage_name(key_of(3)), "10", "x"});
  query.biz_type.reset();
  query.status = Status::failed;
  const auto page = store_->list(query);
  ASSERT_FALSE(page);
  EXPECT_EQ(page.error().code, errc::corrupt);
  EXPECT_THAT(page.error().message, ::testing::HasSubstr("large-3"));
}

}  // namespace
}  // namespace idem::testing
