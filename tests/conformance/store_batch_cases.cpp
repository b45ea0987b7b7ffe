// StoreContract: batches. Items are independent, answers come in input order.
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "drafts.hpp"
#include "idem/conformance/suites.hpp"
#include "idem/testing/describe.hpp"

namespace idem::conformance {
namespace {

using namespace std::chrono_literals;
using State = Answer::State;

std::vector<std::string> names(std::size_t count, const char* prefix = "key-") {
  std::vector<std::string> made;
  for (std::size_t i = 0; i < count; ++i) made.push_back(prefix + std::to_string(i));
  return made;
}

TEST_P(StoreContract, EmptyBatchesAreHarmless) {
  store().insert({});
  store().replace({});
  store().load({});
  store().remove({});
  EXPECT_EQ(store().stats().value().records(), 0u);
}

// Answers in another order would hand one caller the record of another.
TEST_P(StoreContract, ABatchAnswersEveryItemInInputOrder) {
  const auto keys = names(100);
  for (std::size_t i = 0; i < keys.size(); i += 3) {
    (void)insert({"", "", keys[i]}, processing(static_cast<std::uint8_t>(100 + i % 100)));
  }
  std::vector<Insert> ops;
  for (std::size_t i = 0; i < keys.size(); ++i) {
    ops.push_back({{"", "", keys[i]}, processing(static_cast<std::uint8_t>(i)), {}});
  }
  std::reverse(ops.begin(), ops.end());  // not the order of the keys either
  store().insert(ops);
  for (std::size_t n = 0; n < ops.size(); ++n) {
    const std::size_t i = keys.size() - 1 - n;
    const bool stood = i % 3 == 0;
    EXPECT_EQ(ops[n].answer.state, stood ? State::stands : State::written) << keys[i];
    const auto owner = static_cast<std::uint8_t>(stood ? 100 + i % 100 : i);
    EXPECT_EQ(ops[n].answer.held.owner, owner_of(owner)) << keys[i];
  }
}

TEST_P(StoreContract, ABatchOfReplacesMixesHitsMissesAndAbsence) {
  const auto keys = names(30);
  std::vector<Record> records(keys.size());
  std::vector<std::string> results(keys.size());
  std::vector<Replace> ops;
  for (std::size_t i = 0; i < keys.size(); ++i) {
    results[i] = "result of " + keys[i];
    if (i % 3 != 2) records[i] = insert({"", "", keys[i]}, processing()).held;
    const std::uint64_t expected = i % 3 == 1 ? records[i].version + 5 : records[i].version;
    ops.push_back({{"", "", keys[i]}, expected, success(records[i], results[i]), {}});
  }
  store().replace(ops);
  for (std::size_t i = 0; i < keys.size(); ++i) {
    const State expected[] = {State::written, State::stands, State::absent};
    ASSERT_EQ(ops[i].answer.state, expected[i % 3]) << keys[i];
    if (i % 3 == 0) {
      EXPECT_EQ(held({"", "", keys[i]}).result, results[i]);
    }
    if (i % 3 == 1) {
      EXPECT_EQ(held({"", "", keys[i]}), records[i]);
    }
    if (i % 3 == 2) {
      EXPECT_EQ(load({"", "", keys[i]}).state, State::absent);
    }
  }
}

TEST_P(StoreContract, ABatchOfLoadsMixesFoundAndAbsent) {
  const auto keys = names(50);
  for (std::size_t i = 0; i < keys.size(); i += 2) {
    (void)insert({"", "", keys[i]}, processing(static_cast<std::uint8_t>(i)));
  }
  std::vector<Load> ops;
  for (const auto& key : keys) ops.push_back({{"", "", key}, {}});
  store().load(ops);
  for (std::size_t i = 0; i < keys.size(); ++i) {
    ASSERT_EQ(ops[i].answer.state, i % 2 == 0 ? State::stands : State::absent) << keys[i];
    if (i % 2 == 0) {
      EXPECT_EQ(ops[i].answer.held.owner, owner_of(static_cast<std::uint8_t>(i)));
    }
    EXPECT_EQ(ops[i].answer.now, store_clock().now());
  }
}

TEST_P(StoreContract, ABatchOfRemovesMixesHitsMissesAndAbsence) {
  const Record a = insert({"", "", "a"}, processing()).held;
  const Record b = insert({"", "", "b"}, processing()).held;
  std::vector<Remove> ops{{{"", "", "b"}, b.version + 1, {}},
                          {{"", "", "none"}, 1, {}},
                          {{"", "", "a"}, a.version, {}}};
  store().remove(ops);
  EXPECT_EQ(ops[0].answer.state, State::stands);
  EXPECT_EQ(ops[0].answer.held, b);
  EXPECT_EQ(ops[1].answer.state, State::absent);
  EXPECT_EQ(ops[2].answer.state, State::written);
  EXPECT_EQ(load({"", "", "a"}).state, State::absent);
  EXPECT_EQ(held({"", "", "b"}), b);
}

// A key offered twice in one batch has one winner: the first.
TEST_P(StoreContract, TheSameKeyTwiceInABatchTakesEffectInOrder) {
  std::vector<Insert> ops{{{"", "", "k"}, processing(1), {}},
                          {{"", "", "other"}, processing(2), {}},
                          {{"", "", "k"}, processing(3), {}}};
  store().insert(ops);
  EXPECT_EQ(ops[0].answer.state, State::written);
  EXPECT_EQ(ops[1].answer.state, State::written);
  ASSERT_EQ(ops[2].answer.state, State::stands);
  EXPECT_EQ(ops[2].answer.held.owner, owner_of(1));

  const Record record = held({"", "", "k"});
  std::vector<Replace> twice{{{"", "", "k"}, record.version, success(record, "first"), {}},
                             {{"", "", "k"}, record.version, success(record, "second"), {}}};
  store().replace(twice);
  EXPECT_EQ(twice[0].answer.state, State::written);
  ASSERT_EQ(twice[1].answer.state, State::stands);
  EXPECT_EQ(twice[1].answer.held.result, "first");

  const std::uint64_t last = held({"", "", "k"}).version;
  std::vector<Remove> gone{{{"", "", "k"}, last, {}}, {{"", "", "k"}, last, {}}};
  store().remove(gone);
  EXPECT_EQ(gone[0].answer.state, State::written);
  EXPECT_EQ(gone[1].answer.state, State::absent);
}

// A record too large for the store fails alone, and says so: a swallowed error is a lost result.
TEST_P(StoreContract, AnItemThatFailsHarmsNoNeighbour) {
  const std::uint64_t max = capabilities().result_bytes_max;
  if (max > (std::uint64_t{256} << 20)) {
    GTEST_SKIP() << "missing capability: a result_bytes_max that a test can exceed";
  }
  const std::string large(max + 1, 'x');
  std::vector<Insert> ops{{{"", "", "a"}, processing(1), {}},
                          {{"", "", "b"}, processing(2), {}},
                          {{"", "", "c"}, processing(3), {}}};
  ops[1].draft.result = large;
  store().insert(ops);
  EXPECT_EQ(ops[0].answer.state, State::written);
  ASSERT_EQ(ops[1].answer.state, State::failed);
  EXPECT_EQ(ops[1].answer.error.code, errc::too_large);
  EXPECT_EQ(ops[2].answer.state, State::written);
  EXPECT_EQ(load({"", "", "a"}).state, State::stands);
  EXPECT_EQ(load({"", "", "b"}).state, State::absent);
  EXPECT_EQ(load({"", "", "c"}).state, State::stands);
}

TEST_P(StoreContract, ALargeBatchIsOneBatch) {
  constexpr std::size_t kItems = 2000;
  const auto keys = names(kItems);
  std::vector<Insert> ops;
  for (const auto& key : keys) ops.push_back({{"", "pay", key}, processing(), {}});
  store().insert(ops);
  for (const Insert& op : ops) ASSERT_EQ(op.answer.state, State::written);
  EXPECT_EQ(store().stats().value().processing, kItems);
}

// An operation's buffers are used again: nothing of the last answer may stay.
TEST_P(StoreContract, AnAnswerUsedAgainHoldsOnlyTheNewRecord) {
  const Record a = insert({"", "", "a"}, processing()).held;
  (void)replace({"", "", "a"}, a.version, success(a, std::string(5000, 'a')));
  const Record b = insert({"", "", "b"}, processing()).held;
  (void)replace({"", "", "b"}, b.version, success(b, "b"));
  Load op{{"", "", "a"}, {}};
  store().load({&op, 1});
  EXPECT_EQ(op.answer.held.result.size(), 5000u);
  op.key = {"", "", "b"};
  store().load({&op, 1});
  EXPECT_EQ(op.answer.held, held({"", "", "b"}));
  op.key = {"", "", "none"};
  store().load({&op, 1});
  EXPECT_EQ(op.answer.state, State::absent);
}

}  // namespace
}  // namespace idem::conformance
