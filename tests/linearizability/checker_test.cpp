// The checker is right about histories made by hand.
#include <gtest/gtest.h>

#include "history.hpp"

namespace idem::linearizability {
namespace {

using namespace std::chrono_literals;

const Time kStart = kVirtualStart;

// Calls one after the other take ticks of their own; `together` lets them overlap.
class History {
 public:
  History& claim(std::uint32_t owner, std::uint64_t fence, std::uint32_t attempt) {
    Operation op = next(Verb::claim, owner, fence, Outcome::claimed);
    op.attempt = attempt;
    op.lease_until = now_ + 30s;
    return add(op);
  }
  History& claim(std::uint32_t owner, Outcome outcome, std::uint32_t detail = 0,
                 std::uint32_t body = 1) {
    Operation op = next(Verb::claim, owner, 0, outcome);
    op.body = body;
    (outcome == Outcome::in_progress ? op.attempt : op.result) = detail;
    return add(op);
  }
  History& report(Verb verb, std::uint32_t owner, std::uint64_t fence, std::uint32_t payload,
                  Outcome outcome, std::uint32_t result = 0) {
    Operation op = next(verb, owner, fence, outcome);
    op.payload = payload;
    op.result = result;
    if (outcome == Outcome::renewed) op.lease_until = now_ + 30s;
    return add(op);
  }
  History& complete(std::uint32_t owner, std::uint64_t fence, std::uint32_t payload,
                    Outcome outcome, std::uint32_t result = 0) {
    return report(Verb::complete, owner, fence, payload, outcome, result);
  }
  History& after(Micros d) {
    now_ += d;
    return *this;
  }
  // The last `count` calls overlapped.
  History& together(std::size_t count) {
    std::uint64_t first = operations_[operations_.size() - count].invoked;
    for (std::size_t i = operations_.size() - count; i < operations_.size(); ++i) {
      operations_[i].invoked = first++;
      operations_[i].returned = tick_ + i;
    }
    tick_ += 100;
    return *this;
  }
  [[nodiscard]] bool linearizable() const { return !violation(operations_).has_value(); }

 private:
  Operation next(Verb verb, std::uint32_t owner, std::uint64_t fence, Outcome outcome) {
    Operation op;
    op.verb = verb;
    op.owner = owner;
    op.body = 1;
    op.fence = fence;
    op.outcome = outcome;
    op.invoked = tick_ += 10;
    op.returned = op.invoked + 5;
    op.clock_invoked = op.clock_returned = now_;
    return op;
  }
  History& add(const Operation& op) {
    operations_.push_back(op);
    return *this;
  }

  std::vector<Operation> operations_;
  std::uint64_t tick_ = 0;
  Time now_ = kStart;
};

TEST(Checker, AcceptsAPlainLife) {
  EXPECT_TRUE(History()
                  .claim(1, 100, 1)
                  .claim(2, Outcome::in_progress, 1)
                  .claim(3, Outcome::mismatch, 0, 2)
                  .complete(1, 100, 7, Outcome::completed)
                  .complete(1, 100, 7, Outcome::completed)
                  .complete(1, 100, 8, Outcome::conflict, 7)
                  .claim(2, Outcome::replay, 7)
                  .linearizable());
}

TEST(Checker, AcceptsATakeoverAndItsLoser) {
  EXPECT_TRUE(History()
                  .claim(1, 100, 1)
                  .after(30s)
                  .claim(2, 200, 2)
                  .complete(1, 100, 7, Outcome::lost)
                  .complete(2, 200, 8, Outcome::completed)
                  .complete(1, 100, 7, Outcome::lost, 8)
                  .linearizable());
}

TEST(Checker, AcceptsEitherOrderOfCallsThatOverlap) {
  EXPECT_TRUE(
      History().claim(2, Outcome::in_progress, 1).claim(1, 100, 1).together(2).linearizable());
  EXPECT_TRUE(History()
                  .claim(1, 100, 1)
                  .claim(2, Outcome::replay, 7)
                  .complete(1, 100, 7, Outcome::completed)
                  .together(2)
                  .linearizable());
}

TEST(Checker, AcceptsAnUnknownCompleteDoneOrNotDone) {
  const auto unknown = [] {
    return History().claim(1, 100, 1).complete(1, 100, 7, Outcome::unknown);
  };
  EXPECT_TRUE(unknown().claim(2, Outcome::replay, 7).linearizable());
  EXPECT_TRUE(unknown().claim(2, Outcome::in_progress, 1).linearizable());
  EXPECT_TRUE(
      unknown().claim(2, Outcome::in_progress, 1).claim(2, Outcome::replay, 7).linearizable())
      << "it may take effect late";
  EXPECT_FALSE(
      unknown().claim(2, Outcome::replay, 7).claim(2, Outcome::in_progress, 1).linearizable())
      << "but not be undone";
  EXPECT_FALSE(unknown().claim(2, Outcome::replay, 8).linearizable());
}

TEST(Checker, RejectsTwoWinners) {
  EXPECT_FALSE(History().claim(1, 100, 1).claim(2, 101, 1).together(2).linearizable());
}

TEST(Checker, RejectsAnAnswerFromThePast) {
  EXPECT_FALSE(History()
                   .claim(1, 100, 1)
                   .complete(1, 100, 7, Outcome::completed)
                   .claim(2, Outcome::in_progress, 1)
                   .linearizable());
}

TEST(Checker, RejectsAnEarlyTakeover) {
  EXPECT_FALSE(History().claim(1, 100, 1).after(29s).claim(2, 200, 2).linearizable());
}

TEST(Checker, RejectsALeaseThatNeverEnds) {
  EXPECT_FALSE(
      History().claim(1, 100, 1).after(30s).claim(2, Outcome::in_progress, 1).linearizable());
}

TEST(Checker, RejectsAStaleComplete) {
  EXPECT_FALSE(History()
                   .claim(1, 100, 1)
                   .after(30s)
                   .claim(2, 200, 2)
                   .complete(1, 100, 7, Outcome::completed)
                   .linearizable());
}

TEST(Checker, RejectsAReplayThatChanges) {
  EXPECT_FALSE(History()
                   .claim(1, 100, 1)
                   .complete(1, 100, 7, Outcome::completed)
                   .claim(2, Outcome::replay, 7)
                   .claim(2, Outcome::replay, 8)
                   .linearizable());
}

TEST(Checker, RejectsAnIgnoredHash) {
  EXPECT_FALSE(History()
                   .claim(1, 100, 1)
                   .complete(1, 100, 7, Outcome::completed)
                   .claim(2, Outcome::replay, 7, 2)
                   .linearizable());
}

TEST(Checker, RejectsAFenceThatDoesNotGrow) {
  EXPECT_FALSE(History()
                   .claim(1, 100, 1)
                   .report(Verb::release, 1, 100, 0, Outcome::released)
                   .claim(2, 100, 1)
                   .linearizable());
}

TEST(Checker, RejectsAnAttemptCountedTwice) {
  EXPECT_FALSE(History()
                   .claim(1, 100, 1)
                   .report(Verb::fail, 1, 100, 0, Outcome::fail_recorded)
                   .claim(2, 200, 3)
                   .linearizable());
}

TEST(Checker, RejectsARenewalThatDidNotHold) {
  EXPECT_FALSE(History()
                   .claim(1, 100, 1)
                   .after(20s)
                   .report(Verb::renew, 1, 100, 0, Outcome::renewed)
                   .after(10s)
                   .claim(2, 200, 2)
                   .linearizable());
}

TEST(Checker, RejectsACompleteThatIsLostAndThenFound) {
  EXPECT_FALSE(History()
                   .claim(1, 100, 1)
                   .complete(1, 100, 7, Outcome::gone)
                   .claim(2, Outcome::in_progress, 1)
                   .linearizable());
}

}  // namespace
}  // namespace idem::linearizability
