// VerbContract: complete, fail, renew and release, by whoever holds the claim and whoever lost it.
#include "verb_matchers.hpp"

namespace idem::conformance {
namespace {

using namespace std::chrono_literals;
using namespace idem::testing;
using ::testing::Not;

// H05, variant 1: the successor is done when the slow one comes back.
TEST_P(VerbContract, H05ASlowOwnerCannotWriteAfterItsSuccessor) {
  Lease slow = claimed("k");
  advance(30s);
  Lease successor = claimed("k");
  EXPECT_GT(successor.fence(), slow.fence());
  EXPECT_THAT(service().complete(successor, "B-result"), IsCompleted());
  const Record before = record("k");
  EXPECT_THAT(service().complete(slow, "A-result"), LostTo("B-result"));
  EXPECT_THAT(service().complete(slow, "B-result"), LostTo("B-result")) << "equal, but not its own";
  EXPECT_THAT(service().fail(slow, FailKind::retryable, "late"), IsLost());
  EXPECT_THAT(service().renew(slow), IsLost());
  EXPECT_THAT(service().release(slow), IsLost());
  EXPECT_EQ(record("k"), before);
  EXPECT_THAT(claim("k"), ReplayOf("B-result"));
}

// H05, variant 2: the successor still works.
TEST_P(VerbContract, H05ASlowOwnerCannotWriteWhileItsSuccessorWorks) {
  Lease slow = claimed("k");
  advance(30s);
  Lease successor = claimed("k");
  const Record before = record("k");
  EXPECT_THAT(service().complete(slow, "A-result"), IsLost());
  EXPECT_THAT(service().fail(slow, FailKind::final, "late"), IsLost());
  EXPECT_THAT(service().renew(slow), IsLost());
  EXPECT_THAT(service().release(slow), IsLost());
  EXPECT_EQ(record("k"), before);
  EXPECT_THAT(service().complete(successor, "B-result"), IsCompleted());
  EXPECT_THAT(claim("k"), ReplayOf("B-result"));
}

// The same, by a process that only knows the token: nothing is remembered, all is read.
TEST_P(VerbContract, AnAdoptedStaleTokenIsLostEverywhere) {
  const Lease slow = claimed("k");
  advance(30s);
  const Lease successor = claimed("k");
  const Record before = record("k");
  Token other_owner = successor.token();
  other_owner.owner = slow.token().owner;
  Token other_fence = successor.token();
  other_fence.fence = slow.fence();
  for (const Token& token : {slow.token(), other_owner, other_fence}) {
    Lease adopted = Lease::adopt(request("k"), token);
    EXPECT_THAT(service().complete(adopted, "A-result"), IsLost()) << describe(token);
    adopted = Lease::adopt(request("k"), token);
    EXPECT_THAT(service().fail(adopted, FailKind::retryable, "late"), IsLost());
    adopted = Lease::adopt(request("k"), token);
    EXPECT_THAT(service().renew(adopted), IsLost());
    adopted = Lease::adopt(request("k"), token);
    EXPECT_THAT(service().release(adopted), IsLost());
  }
  EXPECT_EQ(record("k"), before);
}

TEST_P(VerbContract, AnAdoptedCurrentTokenIsAsGoodAsTheLease) {
  const Lease first = claimed("k");
  Lease adopted = Lease::adopt(request("k"), first.token());
  EXPECT_THAT(service().renew(adopted), IsRenewed());
  EXPECT_THAT(service().complete(adopted, "R"), IsCompleted());
  EXPECT_THAT(claim("k"), ReplayOf("R"));
}

// A late owner that nobody took over from did the work: its result counts.
TEST_P(VerbContract, ALateCompleteWithoutTakeoverCounts) {
  Lease slow = claimed("k");
  advance(30s);
  const auto outcome = service().complete(slow, "R");
  EXPECT_THAT(outcome, IsCompleted());
  if (exact()) {
    EXPECT_THAT(outcome, IsCompleted(Late()));
  }
  EXPECT_THAT(claim("k"), ReplayOf("R"));
}

TEST_P(VerbContract, ALateCompleteCountsUnderHoldToo) {
  CallOptions hold;
  hold.policy.on_lapsed = OnLapsed::hold;
  Lease slow = claimed("k", "body", hold);
  advance(24h * 400);
  EXPECT_THAT(service().complete(slow, "R"), IsCompleted());
  EXPECT_THAT(claim("k", "body", hold), ReplayOf("R"));
}

TEST_P(VerbContract, APunctualCompleteIsNotCalledLate) {
  IDEM_EXACT_ONLY();
  Lease lease = claimed("k");
  advance(29'999ms);
  EXPECT_THAT(service().complete(lease, "R"), IsCompleted(Not(Late())));
}

// The reply of a complete was lost: the same again is the same; another result is a conflict.
TEST_P(VerbContract, TheFirstResultStays) {
  Lease lease = claimed("k");
  EXPECT_THAT(service().complete(lease, "first"), IsCompleted());
  const Record before = record("k");
  EXPECT_THAT(service().complete(lease, "first"), IsCompleted(Already()));
  EXPECT_THAT(service().complete(lease, "second"), ConflictWith("first"));
  Lease adopted = Lease::adopt(request("k"), lease.token());
  EXPECT_THAT(service().complete(adopted, "second"), ConflictWith("first"));
  adopted = Lease::adopt(request("k"), lease.token());
  EXPECT_THAT(service().complete(adopted, "first"), IsCompleted(Already()));
  EXPECT_EQ(record("k"), before);
  EXPECT_THAT(claim("k"), ReplayOf("first"));
}

// A complete after the record went must not bring it back.
TEST_P(VerbContract, ACompleteOfARecordThatIsAwayInsertsNothing) {
  CallOptions brief;
  brief.policy.lease = 1s;
  brief.policy.stuck_after = 1s;
  brief.policy.result_ttl = 1s;
  Lease expired = claimed("expired", "body", brief);
  Lease swept = claimed("swept", "body", brief);
  Lease removed = claimed("removed");
  ASSERT_THAT(service().force_release(Key("removed"), removed.fence()), IsDone());
  advance(2s);
  EXPECT_THAT(service().complete(expired, "R"), IsGone()) << "expired, though nothing deleted it";
  EXPECT_THAT(service().complete(removed, "R"), IsGone());
  ASSERT_TRUE(store().sweep(100).has_value());
  EXPECT_THAT(service().complete(swept, "R"), IsGone());
  EXPECT_THAT(service().fail(swept, FailKind::final, "no"), IsGone());
  EXPECT_THAT(service().renew(swept), IsGone());
  EXPECT_THAT(service().release(swept), IsReleased());
  for (const char* key : {"expired", "swept", "removed"}) {
    EXPECT_THAT(service().get(Key(key)), IsAbsent());
  }
  EXPECT_EQ(store().stats().value().records(), 0u);
}

// The token of an earlier incarnation of the key: a counter that starts again would fit.
TEST_P(VerbContract, ATokenOfAnOldIncarnationNeverFits) {
  Lease old = claimed("k");
  ASSERT_THAT(service().force_release(Key("k"), old.fence()), IsDone());
  Lease now = claimed("k");
  EXPECT_GT(now.fence(), old.fence());
  EXPECT_THAT(service().complete(old, "ghost"), IsLost());
  EXPECT_THAT(service().release(old), IsLost());
  EXPECT_THAT(service().complete(now, "R"), IsCompleted());
  EXPECT_THAT(service().complete(old, "ghost"), LostTo("R"));
}

TEST_P(VerbContract, ANewIncarnationShowsNoByteOfTheOldOne) {
  CallOptions brief;
  brief.policy.result_ttl = 30s;
  Lease old = claimed("k");
  EXPECT_THAT(service().complete(old, "old result", brief), IsCompleted());
  advance(30s);
  const Lease now = claimed("k", "another body");
  EXPECT_EQ(record("k").result, "");
  EXPECT_GT(now.fence(), old.fence());
  EXPECT_THAT(service().complete(old, "old result"), IsLost());
  EXPECT_THAT(claim("k", "another body"), IsInProgress(AttemptIs(1)));
}

TEST_P(VerbContract, AfterItsOwnFailureNothingElseCounts) {
  Lease lease = claimed("k");
  EXPECT_THAT(service().fail(lease, FailKind::retryable, "503"), IsFailRecorded());
  const Record before = record("k");
  EXPECT_THAT(service().complete(lease, "R"), IsNotProcessing());
  EXPECT_THAT(service().renew(lease), IsNotProcessing());
  EXPECT_THAT(service().release(lease), IsNotProcessing());
  EXPECT_THAT(service().fail(lease, FailKind::final, "other"), IsFailRecorded(Already()));
  EXPECT_EQ(record("k"), before);
}

TEST_P(VerbContract, AfterItsOwnSuccessNothingElseCounts) {
  Lease lease = claimed("k");
  EXPECT_THAT(service().complete(lease, "R"), IsCompleted());
  const Record before = record("k");
  EXPECT_THAT(service().fail(lease, FailKind::final, "no"), IsNotProcessing());
  EXPECT_THAT(service().renew(lease), IsNotProcessing());
  EXPECT_THAT(service().release(lease), IsNotProcessing());
  EXPECT_EQ(record("k"), before);
}

TEST_P(VerbContract, AFailureIsStoredWithItsKindAndReason) {
  Lease lease = claimed("k");
  const std::string reason("503 \0 upstream", 14);
  EXPECT_THAT(service().fail(lease, FailKind::retryable, reason, 5s), IsFailRecorded());
  const Record stored = record("k");
  EXPECT_EQ(stored.status, Status::failed);
  EXPECT_EQ(stored.fail_kind, FailKind::retryable);
  EXPECT_EQ(stored.result, reason);
  EXPECT_EQ(stored.retry_at, store_clock().now() + 5s);
  EXPECT_EQ(stored.expires_at, store_clock().now() + 24h);
}

TEST_P(VerbContract, RenewExtendsAndNeverShortens) {
  Lease lease = claimed("k");
  advance(20s);
  EXPECT_THAT(service().renew(lease), IsRenewed());
  EXPECT_THAT(claim("k"), IsInProgress(RetryAfter(30s)));
  EXPECT_EQ(lease.lease_until(), store_clock().now() + 30s);
  CallOptions shorter;
  shorter.policy.lease = 1s;
  EXPECT_THAT(service().renew(lease, shorter), IsRenewed());
  EXPECT_THAT(claim("k"), IsInProgress(RetryAfter(30s)));
  CallOptions longer;
  longer.policy.lease = 2min;
  EXPECT_THAT(service().renew(lease, longer), IsRenewed());
  EXPECT_THAT(claim("k"), IsInProgress(RetryAfter(2min)));
  advance(2min);
  EXPECT_THAT(service().renew(lease), IsRenewed(Late()));
  EXPECT_THAT(claim("k"), IsInProgress(::testing::AllOf(AttemptIs(1), RetryAfter(30s))));
  EXPECT_THAT(service().complete(lease, "R"), IsCompleted());
}

// A renewed lease keeps its fence: what was sent downstream stays valid.
TEST_P(VerbContract, RenewKeepsFenceAndAttempt) {
  Lease lease = claimed("k");
  const Token before = lease.token();
  for (int i = 0; i < 5; ++i) {
    advance(10s);
    ASSERT_THAT(service().renew(lease), IsRenewed());
  }
  EXPECT_EQ(lease.token(), before);
  EXPECT_EQ(record("k").token(), before);
  EXPECT_EQ(record("k").attempt, 1u);
}

TEST_P(VerbContract, RenewKeepsToItsTotal) {
  CallOptions bounded;
  bounded.policy.max_total_lease = 60s;
  Lease lease = claimed("k", "body", bounded);
  advance(30s - 1ms);
  EXPECT_THAT(service().renew(lease, bounded), IsRenewed());
  advance(2ms);
  const Record before = record("k");
  EXPECT_THAT(service().renew(lease, bounded), IsRenewRefused());
  EXPECT_EQ(record("k"), before);
}

TEST_P(VerbContract, ReleaseFreesTheKeyAtOnce) {
  Lease lease = claimed("k");
  EXPECT_THAT(service().release(lease), IsReleased());
  EXPECT_THAT(service().get(Key("k")), IsAbsent());
  const Lease next = claimed("k", "another body");
  EXPECT_EQ(next.attempt(), 1u);
  EXPECT_GT(next.fence(), lease.fence());
  EXPECT_THAT(service().release(lease), IsLost()) << "removed without comparing the token";
  EXPECT_THAT(claim("k", "another body"), IsInProgress());
}

TEST_P(VerbContract, ALapsedClaimCanBeReleased) {
  Lease lease = claimed("k");
  advance(40s);
  EXPECT_THAT(service().release(lease), IsReleased());
  EXPECT_THAT(service().release(lease), IsReleased()) << "nothing is there: as asked";
  EXPECT_THAT(claim("k"), IsClaimed(AttemptIs(1)));
}

TEST_P(VerbContract, EachCallMayHaveItsOwnResultTtl) {
  Lease lease = claimed("k");
  CallOptions brief;
  brief.policy.result_ttl = 45s;
  EXPECT_THAT(service().complete(lease, "R", brief), IsCompleted());
  advance(45s - 1ms);
  EXPECT_THAT(claim("k"), ReplayOf("R"));
  advance(1ms);
  EXPECT_THAT(claim("k"), IsClaimed(AttemptIs(1)));
}

// A result must not go just because its lease would have.
TEST_P(VerbContract, AProcessingRecordOutlivesItsLease) {
  Lease lease = claimed("k");
  advance(24h + 30s - 1ms);
  EXPECT_THAT(service().complete(lease, "R"), IsCompleted());
  Lease second = claimed("k2");
  advance(24h + 30s);
  EXPECT_THAT(service().complete(second, "R"), IsGone());
}

}  // namespace
}  // namespace idem::conformance
