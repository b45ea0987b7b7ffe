#include "idem/sequence_guard.hpp"

#include <gmock/gmock.h>

#include <algorithm>
#include <atomic>
#include <thread>
#include <vector>

#include "idem/open.hpp"

namespace idem {
namespace {

using ::testing::HasSubstr;

// Answers `unknown` to a number of writes: before they reach the store, or after they took.
class LosingReplies : public IdempotencyStore {
 public:
  explicit LosingReplies(StorePtr inner) : inner_(std::move(inner)) {}
  int to_lose = 0;
  bool after_the_write = false;

  void insert(std::span<Insert> ops) override {
    forward(ops, [&] { inner_->insert(ops); });
  }
  void replace(std::span<Replace> ops) override {
    forward(ops, [&] { inner_->replace(ops); });
  }
  void load(std::span<Load> ops) override { inner_->load(ops); }
  void remove(std::span<Remove> ops) override { inner_->remove(ops); }
  result<std::uint64_t> sweep(std::size_t limit) override { return inner_->sweep(limit); }
  result<Page> list(const ListQuery& query) override { return inner_->list(query); }
  result<StoreStats> stats() override { return inner_->stats(); }
  [[nodiscard]] const Capabilities& capabilities() const noexcept override {
    return inner_->capabilities();
  }

 private:
  template <class Op, class Write>
  void forward(std::span<Op> ops, Write write) {
    const bool lose = to_lose > 0;
    if (lose) --to_lose;
    if (!lose || after_the_write) write();
    if (!lose) return;
    for (Op& op : ops) {
      op.answer = Answer{};
      op.answer.error = fail(errc::unknown, "the reply was lost");
    }
  }

  StorePtr inner_;
};

class SequenceGuardTest : public ::testing::Test {
 protected:
  VirtualClock clock;
  StorePtr store = open("memory:", {&clock}).value();
};

template <class Outcome>
bool is(const result<SequenceOutcome>& outcome) {
  return outcome && std::holds_alternative<Outcome>(*outcome);
}

// H19: events 2, 1, 3, 2 of one order: 1 and the second 2 must not turn the state back.
TEST_F(SequenceGuardTest, LateAndRepeatedEventsAreRefused) {
  SequenceGuard guard(store);
  EXPECT_TRUE(is<Applied>(guard.accept("order-9", 2)));
  const auto late = guard.accept("order-9", 1);
  ASSERT_TRUE(is<Stale>(late));
  EXPECT_EQ(std::get<Stale>(*late).newest, 2U);
  EXPECT_TRUE(is<Duplicate>(guard.accept("order-9", 2)));
  EXPECT_TRUE(is<Applied>(guard.accept("order-9", 3)));
  EXPECT_TRUE(is<Stale>(guard.accept("order-9", 2)));
  EXPECT_EQ(guard.newest("order-9").value(), 3U);
  EXPECT_EQ(guard.newest("order-10").value(), std::nullopt);
}

// Racing deliveries of the same numbers: each takes effect at most once, and the mark only rises.
TEST_F(SequenceGuardTest, EveryNumberIsAppliedAtMostOnce) {
  constexpr std::uint64_t kNumbers = 200;
  SequenceGuard guard(store);
  std::vector<std::atomic<int>> applied(kNumbers + 1);
  std::atomic<int> errors{0};
  {
    std::vector<std::jthread> threads;
    for (int i = 0; i < 4; ++i) {
      threads.emplace_back([&] {
        for (std::uint64_t seq = 1; seq <= kNumbers; ++seq) {
          const auto outcome = guard.accept("s", seq);
          if (!outcome) ++errors;
          if (is<Applied>(outcome)) ++applied[seq];
        }
      });
    }
  }
  EXPECT_EQ(errors, 0);
  EXPECT_TRUE(std::all_of(applied.begin(), applied.end(), [](const auto& n) { return n <= 1; }));
  EXPECT_EQ(applied[kNumbers], 1);
  EXPECT_EQ(guard.newest("s").value(), kNumbers);
}

// An event must not be dropped as a duplicate of itself because the reply to its write was lost.
TEST_F(SequenceGuardTest, LostReplyIsNotTakenForADuplicate) {
  const auto losing = std::make_shared<LosingReplies>(store);
  SequenceGuard guard(losing);
  losing->after_the_write = true;
  losing->to_lose = 1;
  EXPECT_TRUE(is<Applied>(guard.accept("s", 5)));  // its insert took, unheard
  losing->to_lose = 1;
  EXPECT_TRUE(is<Applied>(guard.accept("s", 6)));  // its replace took, unheard
  EXPECT_TRUE(is<Duplicate>(guard.accept("s", 6)));
  losing->after_the_write = false;
  losing->to_lose = 2;
  EXPECT_TRUE(is<Applied>(guard.accept("s", 7)));
}

// A store that never answers must be told to the caller as what it is.
TEST_F(SequenceGuardTest, AStoreThatNeverAnswersIsUnknown) {
  const auto losing = std::make_shared<LosingReplies>(store);
  losing->to_lose = 1000;
  SequenceGuard guard(losing);
  const auto outcome = guard.accept("s", 1);
  ASSERT_FALSE(outcome);
  EXPECT_EQ(outcome.error().code, errc::unknown);
  EXPECT_GT(losing->to_lose, 990);
}

// With refuse_gaps nothing overtakes a missing event.
TEST_F(SequenceGuardTest, GapsAreRefusedWhereAskedFor) {
  SequenceOptions options;
  options.refuse_gaps = true;
  SequenceGuard guard(store, options);
  const auto early = guard.accept("s", 2);
  ASSERT_TRUE(is<Gap>(early));
  EXPECT_EQ(std::get<Gap>(*early).newest, 0U);
  EXPECT_TRUE(is<Applied>(guard.accept("s", 1)));
  EXPECT_TRUE(is<Gap>(guard.accept("s", 3)));
  EXPECT_TRUE(is<Applied>(guard.accept("s", 2)));
  EXPECT_TRUE(is<Applied>(guard.accept("s", 3)));
  EXPECT_TRUE(is<Stale>(guard.accept("s", 1)));
}

// A forgotten stream starts again; the boundary is the instant itself.
TEST_F(SequenceGuardTest, AStreamIsForgottenWhenItsTimeIsOver) {
  SequenceOptions options;
  options.keep = std::chrono::hours(1);
  SequenceGuard guard(store, options);
  ASSERT_TRUE(is<Applied>(guard.accept("s", 9)));
  clock.advance(std::chrono::hours(1) - Micros(1));
  EXPECT_TRUE(is<Stale>(guard.accept("s", 8)));
  clock.advance(Micros(1));
  EXPECT_EQ(guard.newest("s").value(), std::nullopt);
  EXPECT_TRUE(is<Applied>(guard.accept("s", 8)));
}

TEST_F(SequenceGuardTest, BadNamesAndForeignRecordsAreErrors) {
  SequenceGuard guard(store);
  EXPECT_EQ(guard.accept("", 1).error().code, errc::invalid_argument);
  EXPECT_EQ(guard.accept(std::string(129, 'x'), 1).error().code, errc::invalid_argument);
  Insert foreign{{"", "idem.sequence", "s"}, {}, {}};
  foreign.draft.keep = std::chrono::hours(1);
  foreign.draft.result = "not a number";
  store->insert({&foreign, 1});
  const auto outcome = guard.accept("s", 1);
  ASSERT_FALSE(outcome);
  EXPECT_EQ(outcome.error().code, errc::corrupt);
  EXPECT_THAT(outcome.error().message, HasSubstr("mark"));
}

}  // namespace
}  // namespace idem
