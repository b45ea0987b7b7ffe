// StoreContract: every byte of every field comes back, keys above all.
#include <gtest/gtest.h>

#include <array>
#include <map>
#include <string>
#include <vector>

#include "drafts.hpp"
#include "idem/conformance/suites.hpp"
#include "idem/testing/describe.hpp"

namespace idem::conformance {
namespace {

using namespace std::chrono_literals;
using State = Answer::State;

// Keys that some column type, collation, trimming or naming scheme takes for one another.
std::vector<Key> confusable_keys() {
  std::vector<Key> keys;
  for (const char* key : {"00123",
                          "123",
                          "1e2",
                          "100",
                          "0x10",
                          "16",
                          "1.0",
                          "1",
                          " 1",
                          "1 ",
                          "abc",
                          "ABC",
                          "Abc",
                          "abc ",
                          " abc",
                          "abc  ",
                          "\xC3\xA1"
                          "bc",
                          "a\xCC\x81"
                          "bc",
                          "\xCE\xA9",
                          "\xCF\x89",
                          "api_4qD329Bz",
                          "api_4qd329bz",
                          "%",
                          "_",
                          "a%",
                          "a_",
                          "'",
                          "''",
                          "\"",
                          "\\",
                          "\\\\",
                          "a:b",
                          "a::b",
                          "a/b",
                          "a|b",
                          "{a}b",
                          "{b}a",
                          "null",
                          "NULL",
                          "nan",
                          "true",
                          "\xF0\x9F\x98\x80",
                          "\xEF\xBB\xBF"
                          "a",
                          "a",
                          "A",
                          "\xC3\x9F",
                          "ss",
                          "\xEF\xAC\x81",
                          "fi",
                          "*",
                          "?",
                          "[a]",
                          "-1",
                          "+1"}) {
    keys.emplace_back(key);
  }
  // The same letters cut differently into tenant, biz_type and key.
  for (const auto& [tenant, biz, key] : std::vector<std::array<const char*, 3>>{
           {"", "", "abcd"},   {"", "a", "bcd"},    {"a", "", "bcd"},   {"a", "b", "cd"},
           {"ab", "", "cd"},   {"", "ab", "cd"},    {"abc", "", "d"},   {"", "abc", "d"},
           {"a:b", "", "cd"},  {"a", ":b", "cd"},   {"a", "b:", "cd"},  {"a", "b", ":cd"},
           {"1:a", "", "bcd"}, {"", "1:a", "bcd"},  {"", "", "1:abcd"}, {"", "", "0:0:abcd"},
           {"", "pay", "1"},   {"", "refund", "1"}, {"pay", "", "1"},   {"", "Pay", "1"}}) {
    keys.emplace_back(tenant, biz, key);
  }
  return keys;
}

// One key taken for another replays a stranger's result.
TEST_P(StoreContract, KeysAreComparedByteForByte) {
  std::map<Key, std::string> results;
  for (const Key& key : confusable_keys()) results[key] = "result of " + testing::describe(key);
  for (const auto& [key, result] : results) {
    const Answer made = insert(key, processing());
    ASSERT_EQ(made.state, State::written) << testing::describe(key);
    ASSERT_EQ(replace(key, made.held.version, success(made.held, result)).state, State::written);
  }
  for (const auto& [key, result] : results) {
    EXPECT_EQ(held(key).result, result) << testing::describe(key);
  }
  ListQuery query;
  query.limit = results.size() + 10;
  const Page page = store().list(query).value();
  ASSERT_EQ(page.items.size(), results.size());
  for (const Listed& item : page.items) {
    ASSERT_TRUE(results.contains(item.key)) << testing::describe(item.key);
    EXPECT_EQ(item.record.result, results[item.key]);
  }
}

TEST_P(StoreContract, TheLongestKeysDifferInTheirLastByte) {
  const Key a(std::string(kTenantBytesMax, 't'), std::string(kBizTypeBytesMax, 'b'),
              std::string(kKeyBytesMax, 'k'));
  Key b = a;
  b.key.back() = 'l';
  Key c = a;
  c.biz_type.back() = 'c';
  Key d = a;
  d.tenant.back() = 'u';
  std::uint8_t who = 1;
  for (const Key& key : {a, b, c, d}) {
    EXPECT_EQ(insert(key, processing(who++)).state, State::written) << testing::describe(key);
  }
  who = 1;
  for (const Key& key : {a, b, c, d}) EXPECT_EQ(held(key).owner, owner_of(who++));
}

TEST_P(StoreContract, ResultsOfEverySizeComeBackWhole) {
  std::vector<std::size_t> sizes{0, 1, 255, 256, 4096, 65535, 65536, 117465, 1048576};
  if (capabilities().result_bytes_max >= (std::uint64_t{16} << 20)) {
    sizes.push_back(std::size_t{16} << 20);
  }
  for (const std::size_t size : sizes) {
    std::string result(size, '\0');
    for (std::size_t i = 0; i < size; ++i) result[i] = static_cast<char>((i * 131) >> 3);
    const std::string key = "size-" + std::to_string(size);
    const Record record = insert({"", "", key}, processing()).held;
    const Answer answer = replace({"", "", key}, record.version, success(record, result));
    ASSERT_EQ(answer.state, State::written) << size << " " << testing::describe(answer);
    EXPECT_TRUE(answer.held.result == result) << size;
    EXPECT_TRUE(held({"", "", key}).result == result) << size;
  }
}

TEST_P(StoreContract, ResultsAreBinary) {
  std::string every;
  for (int byte = 0; byte < 256; ++byte) every += static_cast<char>(byte);
  for (const std::string& result :
       {every, std::string(1, '\0'), std::string("\0\0a", 3), std::string("a\0", 2),
        std::string("\xFF\xFE"), std::string(" trailing "), std::string("'; DROP TABLE x; --")}) {
    const std::string key = "binary-" + Fingerprint::of_bytes(result).hex().substr(0, 16);
    const Record record = insert({"", "", key}, processing()).held;
    ASSERT_EQ(replace({"", "", key}, record.version, success(record, result)).state,
              State::written);
    EXPECT_EQ(held({"", "", key}).result, result);
  }
}

// A hash compared in part lets another request through.
TEST_P(StoreContract, EveryByteOfHashAndOwnerComesBack) {
  for (std::size_t i = 0; i < 32; ++i) {
    Draft draft = processing();
    draft.request_hash.bytes[i] ^= 0x80;
    draft.owner.bytes[i % 16] = static_cast<std::uint8_t>(200 + i);
    const std::string key = "byte-" + std::to_string(i);
    ASSERT_EQ(insert({"", "", key}, draft).state, State::written);
    const Record record = held({"", "", key});
    EXPECT_EQ(record.request_hash, draft.request_hash);
    EXPECT_EQ(record.owner, draft.owner);
  }
}

TEST_P(StoreContract, FlagsKindsAndCountsComeBack) {
  for (const FailKind kind : {FailKind::retryable, FailKind::final, FailKind::abandoned}) {
    for (const bool tombstone : {false, true}) {
      const std::string key =
          std::string(to_string(kind)) + (tombstone ? "-tombstone" : "-retained");
      const Record record = insert({"", "", key}, processing()).held;
      Draft draft = success(record, "reason");
      draft.status = Status::failed;
      draft.fail_kind = kind;
      draft.tombstone = tombstone;
      draft.attempt = 4'000'000'000;
      const Answer answer = replace({"", "", key}, record.version, draft);
      ASSERT_EQ(answer.state, State::written);
      const Record stored = held({"", "", key});
      EXPECT_EQ(stored, answer.held);
      EXPECT_EQ(stored.fail_kind, kind);
      EXPECT_EQ(stored.tombstone, tombstone);
      EXPECT_EQ(stored.attempt, 4'000'000'000u);
    }
  }
}

// A record that came from a store whose clock is ahead brings its fence along: the next attempt
// must get a higher one.
TEST_P(StoreContract, AVersionIsNeverBelowItsFence) {
  const auto ahead = [this](Micros by) {
    return static_cast<std::uint64_t>((store_clock().now() + by).time_since_epoch().count());
  };
  Draft moved = processing();
  moved.fence = ahead(1h);
  const Record inserted = insert({"", "", "k"}, moved).held;
  EXPECT_EQ(inserted.fence, moved.fence);
  EXPECT_EQ(inserted.version, moved.fence);
  EXPECT_EQ(held({"", "", "k"}), inserted);
  moved.fence = ahead(2h);
  moved.fresh = true;
  const Record replaced = replace({"", "", "k"}, inserted.version, moved).held;
  EXPECT_EQ(replaced.version, moved.fence);
  EXPECT_EQ(held({"", "", "k"}), replaced);
  const Record claimed = replace({"", "", "k"}, replaced.version, processing(2)).held;
  EXPECT_GT(claimed.fence, moved.fence);
  ASSERT_EQ(remove({"", "", "k"}, claimed.version).state, State::written);
  EXPECT_GT(insert({"", "", "k"}, processing(3)).held.fence, claimed.fence);
}

// 2038 and 2106 are where 32-bit and TIMESTAMP columns end.
TEST_P(StoreContract, AHundredYearsCanBeStored) {
  Draft draft = processing();
  draft.lease = kDurationMax;
  draft.keep = 2 * kDurationMax;
  const Time now = store_clock().now();
  const Record record = insert({"", "", "k"}, draft).held;
  EXPECT_EQ(record.lease_until, now + kDurationMax);
  EXPECT_EQ(record.expires_at, now + 2 * kDurationMax);
  EXPECT_EQ(held({"", "", "k"}), record);
  store_clock().advance(kDurationMax - Micros(1ms));
  EXPECT_EQ(held({"", "", "k"}), record);
  EXPECT_EQ(store().sweep(10).value(), 0u);
}

TEST_P(StoreContract, TimesAreKeptToTheMillisecond) {
  store_clock().advance(1ms);
  Draft draft = processing();
  draft.lease = 1ms;
  draft.keep = 3ms;
  const Time now = store_clock().now();
  (void)insert({"", "", "k"}, draft);
  const Record record = held({"", "", "k"});
  EXPECT_EQ(record.lease_until, now + 1ms);
  EXPECT_EQ(record.expires_at, now + 3ms);
  EXPECT_EQ(record.create_time, now);
}

}  // namespace
}  // namespace idem::conformance
