// The transition guard: what moves, what is a duplicate, what is refused.
#include "idem/transition_guard.hpp"

#include <gtest/gtest.h>

#include <latch>
#include <thread>

#include "idem/testing/fault_store.hpp"
#include "idem/testing/reference_store.hpp"

namespace idem {
namespace {

using testing::ReferenceStore;

class TransitionGuardTest : public ::testing::Test {
 protected:
  VirtualClock clock;
  std::shared_ptr<ReferenceStore> store = std::make_shared<ReferenceStore>(clock);
  TransitionGuard guard{store,
                        {{"WAIT_PAY", "PAID"}, {"PAID", "REFUNDED"}, {"WAIT_PAY", "CLOSED"}},
                        {.initial = "WAIT_PAY"}};

  std::string advance(std::string_view from, std::string_view to, std::uint64_t fence = 0) {
    return word(guard.advance("order-9", from, to, fence));
  }
  static std::string word(const result<TransitionOutcome>& outcome) {
    if (!outcome) return std::string(to_string(outcome.error().code));
    if (std::holds_alternative<Applied>(*outcome)) return "applied";
    if (std::holds_alternative<AlreadyThere>(*outcome)) return "already there";
    return "refused: " + std::get<Refused>(*outcome).current;
  }
};

TEST_F(TransitionGuardTest, MovesAlongAllowedTransitionsOnly) {
  EXPECT_EQ(guard.current("order-9")->state, "WAIT_PAY");
  EXPECT_EQ(advance("WAIT_PAY", "REFUNDED"), "refused: WAIT_PAY");
  EXPECT_EQ(advance("WAIT_PAY", "PAID"), "applied");
  EXPECT_EQ(advance("WAIT_PAY", "PAID"), "already there");
  EXPECT_EQ(advance("WAIT_PAY", "CLOSED"), "refused: PAID");
  EXPECT_EQ(advance("PAID", "REFUNDED"), "applied");
  EXPECT_EQ(advance("WAIT_PAY", "PAID"), "refused: REFUNDED");
  EXPECT_EQ(guard.current("order-9")->state, "REFUNDED");
}

// A worker that lost its lease still holds its old fence.
TEST_F(TransitionGuardTest, AnOlderFenceMovesNothing) {
  EXPECT_EQ(advance("WAIT_PAY", "PAID", 20), "applied");
  EXPECT_EQ(advance("PAID", "REFUNDED", 19), "refused: PAID");
  EXPECT_EQ(guard.current("order-9")->fence, 20U);
  EXPECT_EQ(advance("PAID", "REFUNDED", 20), "applied");
}

TEST_F(TransitionGuardTest, ABatchAnswersInInputOrder) {
  const std::string long_name(129, 'x');
  const std::vector<Transition> items{{"a", "WAIT_PAY", "PAID"},       {"b", "WAIT_PAY", "CLOSED"},
                                      {long_name, "WAIT_PAY", "PAID"}, {"a", "WAIT_PAY", "PAID"},
                                      {"a", "PAID", "REFUNDED"},       {"b", "WAIT_PAY", "PAID"}};
  std::vector<std::string> words;
  for (const auto& outcome : guard.advance_many(items)) words.push_back(word(outcome));
  EXPECT_EQ(words, (std::vector<std::string>{"applied", "applied", "invalid_argument",
                                             "already there", "applied", "refused: CLOSED"}));
}

TEST_F(TransitionGuardTest, OneOfManyRacingCallsMoves) {
  for (int round = 0; round < 50; ++round) {
    const std::string entity = "order-" + std::to_string(round);
    std::latch start(8);
    std::atomic<int> applied{0}, duplicates{0};
    std::vector<std::jthread> threads;
    for (int i = 0; i < 8; ++i) {
      threads.emplace_back([&] {
        start.arrive_and_wait();
        const auto outcome = guard.advance(entity, "WAIT_PAY", "PAID");
        applied += outcome && std::holds_alternative<Applied>(*outcome) ? 1 : 0;
        duplicates += outcome && std::holds_alternative<AlreadyThere>(*outcome) ? 1 : 0;
      });
    }
    threads.clear();
    ASSERT_EQ(applied, 1);
    ASSERT_EQ(duplicates, 7);
  }
}

TEST_F(TransitionGuardTest, AnotherProgramsRecordIsNotAState) {
  Draft draft;
  draft.status = Status::success;
  draft.keep = kDurationMax;
  draft.result = "something else";
  Insert insert{{"", "idem.transition", "order-9"}, draft, {}};
  store->insert({&insert, 1});
  EXPECT_EQ(advance("WAIT_PAY", "PAID"), "corrupt");
}

TEST_F(TransitionGuardTest, ASenselessGuardIsRefusedAtStart) {
  EXPECT_THROW(TransitionGuard(store, {}, {.initial = "A"}), Exception);
  EXPECT_THROW(TransitionGuard(store, {{"A", "A"}}, {.initial = "A"}), Exception);
  EXPECT_THROW(TransitionGuard(store, {{"A", "B"}}, {}), Exception);
}

}  // namespace
}  // namespace idem
