// VerbContract: what a claim answers in each state, and when states end.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "verb_matchers.hpp"

namespace idem::conformance {
namespace {

using namespace std::chrono_literals;
using namespace idem::testing;

TEST_P(VerbContract, TheFirstClaimIsFresh) {
  const Lease lease = claimed("k");
  EXPECT_EQ(lease.attempt(), 1u);
  EXPECT_EQ(lease.previous_fence(), 0u);
  EXPECT_EQ(lease.lease_left(), 30s);
  EXPECT_GT(lease.fence(), 0u);
  if (exact()) {
    EXPECT_EQ(lease.kind(), ClaimKind::fresh);
  }
  const Record stored = record("k");
  EXPECT_EQ(stored.status, Status::processing);
  EXPECT_EQ(stored.token(), lease.token());
  EXPECT_EQ(stored.request_hash, request("k").fingerprint);
}

// A lease in seconds that is compared in milliseconds ends at once, or never.
TEST_P(VerbContract, InProgressTellsExactlyWhenTheLeaseEnds) {
  const Lease lease = claimed("k");
  EXPECT_THAT(claim("k"), IsInProgress(::testing::AllOf(AttemptIs(1), RetryAfter(30s))));
  advance(29s);
  EXPECT_THAT(claim("k"), IsInProgress(RetryAfter(1s)));
  advance(999ms);
  EXPECT_THAT(claim("k"), IsInProgress(RetryAfter(1ms)));
}

// At the deadline, not after it, the lease is over.
TEST_P(VerbContract, ALeaseIsOverAtItsVeryEnd) {
  for (const auto& [wait, over] :
       {std::pair{29'999ms, false}, std::pair{30'000ms, true}, std::pair{30'001ms, true}}) {
    const std::string key = "k" + std::to_string(wait.count());
    const Lease slow = claimed(key);
    advance(wait);
    const auto outcome = claim(key);
    if (over) {
      EXPECT_THAT(outcome, IsClaimed(AttemptIs(2))) << wait.count();
    } else {
      EXPECT_THAT(outcome, IsInProgress()) << wait.count();
    }
  }
}

TEST_P(VerbContract, ATakeoverHasANewFenceAndTellsTheOldOne) {
  const Lease slow = claimed("k");
  advance(31s);
  const Lease next = claimed("k");
  EXPECT_GT(next.fence(), slow.fence());
  EXPECT_NE(next.token().owner, slow.token().owner);
  EXPECT_EQ(next.attempt(), 2u);
  EXPECT_EQ(next.lease_left(), 30s);
  if (exact()) {
    EXPECT_EQ(next.kind(), ClaimKind::takeover);
    EXPECT_EQ(next.previous_fence(), slow.fence());
  }
  EXPECT_THAT(claim("k"), IsInProgress(::testing::AllOf(AttemptIs(2), RetryAfter(30s))));
}

// H03: the end of the lease never removes a finished record.
TEST_P(VerbContract, H03LeaseAndResultLifetimeAreTwoTimes) {
  CallOptions options;
  options.policy.lease = 300ms;
  const Lease killed = claimed("k", "body", options);
  advance(100ms);
  EXPECT_THAT(claim("k", "body", options), IsInProgress(RetryAfter(200ms)));
  advance(150ms);
  EXPECT_THAT(claim("k", "body", options), IsInProgress(RetryAfter(50ms)));
  advance(150ms);
  Lease next = claimed("k", "body", options);
  EXPECT_GT(next.fence(), killed.fence());
  EXPECT_THAT(service().complete(next, "R"), IsCompleted());
  advance(1s);
  EXPECT_THAT(claim("k"), ReplayOf("R"));
  advance(1h);
  EXPECT_THAT(claim("k"), ReplayOf("R"));
}

// The reply of a claim was lost: asking again with the same token is the same claim.
TEST_P(VerbContract, OwnTokenResumesALiveClaim) {
  const Lease first = claimed("k");
  advance(20s);
  CallOptions same;
  same.owner = first.token().owner;
  const Lease again = claimed("k", "body", same);
  EXPECT_EQ(again.token(), first.token());
  EXPECT_EQ(again.attempt(), 1u);
  EXPECT_EQ(again.kind(), ClaimKind::resumed);
  EXPECT_EQ(again.lease_left(), 30s);
  EXPECT_THAT(claim("k"), IsInProgress(RetryAfter(30s)));
}

TEST_P(VerbContract, ResumingNeverShortensTheLease) {
  CallOptions longer;
  longer.policy.lease = 5min;
  const Lease first = claimed("k", "body", longer);
  CallOptions same;
  same.owner = first.token().owner;
  EXPECT_EQ(claimed("k", "body", same).lease_left(), 5min);
}

TEST_P(VerbContract, OwnTokenTakesItsLapsedClaimOverAsTheSameAttempt) {
  const Lease first = claimed("k");
  advance(30s);
  CallOptions same;
  same.owner = first.token().owner;
  const Lease again = claimed("k", "body", same);
  EXPECT_GT(again.fence(), first.fence());
  EXPECT_EQ(again.attempt(), 1u);
}

TEST_P(VerbContract, HoldLeavesALapsedClaimToAPerson) {
  CallOptions hold;
  hold.policy.on_lapsed = OnLapsed::hold;
  const Lease lost = claimed("k", "body", hold);
  EXPECT_THAT(claim("k", "body", hold), IsInProgress());
  advance(30s);
  const Record before = record("k");
  EXPECT_THAT(
      claim("k", "body", hold),
      IsInDoubt(::testing::AllOf(AttemptIs(1), ::testing::Field(&InDoubt::fence, lost.fence()))));
  EXPECT_EQ(record("k"), before);
  advance(24h * 365);
  EXPECT_THAT(service().sweep(), SweptOf(0, 0));
  EXPECT_THAT(claim("k", "body", hold), IsInDoubt());
  hold.owner = lost.token().owner;
  EXPECT_THAT(claim("k", "body", hold), IsClaimed(AttemptIs(1)));
}

TEST_P(VerbContract, TheAttemptCapEndsInExhausted) {
  CallOptions capped;
  capped.policy.max_attempts = 2;
  const Lease first = claimed("k", "body", capped);
  advance(30s);
  const Lease second = claimed("k", "body", capped);
  EXPECT_EQ(second.attempt(), 2u);
  EXPECT_THAT(claim("k", "body", capped), IsInProgress());
  advance(30s);
  const Record before = record("k");
  EXPECT_THAT(claim("k", "body", capped), IsExhausted());
  EXPECT_EQ(record("k"), before) << "computed, never stored";
  EXPECT_THAT(claim("k"), IsClaimed(AttemptIs(3))) << "another caller may have another cap";
}

// H04, policy A: retried up to the cap, then the stored reason.
TEST_P(VerbContract, H04FailuresAreRetriedUpToTheCap) {
  CallOptions capped;
  capped.policy.max_attempts = 3;
  for (std::uint32_t attempt = 1; attempt <= 3; ++attempt) {
    Lease lease = claimed("k", "body", capped);
    EXPECT_EQ(lease.attempt(), attempt);
    const std::string reason = "503 upstream, try " + std::to_string(attempt);
    EXPECT_THAT(service().fail(lease, FailKind::retryable, reason), IsFailRecorded());
  }
  const Record before = record("k");
  EXPECT_THAT(claim("k", "body", capped), FailedWith("503 upstream, try 3"));
  EXPECT_THAT(claim("k", "body", capped), FailedWith("503 upstream, try 3"));
  EXPECT_EQ(record("k"), before);
}

// H04, policy B: a failure is final, and never looks like a success.
TEST_P(VerbContract, H04WithoutRetryTheFirstFailureStays) {
  CallOptions once;
  once.policy.retry_failed = false;
  Lease lease = claimed("k", "body", once);
  EXPECT_THAT(service().fail(lease, FailKind::retryable, "503 upstream"), IsFailRecorded());
  for (int i = 0; i < 4; ++i) {
    EXPECT_THAT(claim("k", "body", once), FailedWith("503 upstream"));
  }
  EXPECT_THAT(claim("k"), IsClaimed(AttemptIs(2))) << "the record still tells that it may be tried";
}

TEST_P(VerbContract, BackoffEndsAtItsTime) {
  Lease lease = claimed("k");
  EXPECT_THAT(service().fail(lease, FailKind::retryable, "busy", 10s), IsFailRecorded());
  EXPECT_THAT(claim("k"), IsBackoff(RetryAfter(10s)));
  advance(9'999ms);
  EXPECT_THAT(claim("k"), IsBackoff(RetryAfter(1ms)));
  advance(1ms);
  const Lease retry = claimed("k");
  EXPECT_EQ(retry.attempt(), 2u);
  EXPECT_GT(retry.fence(), lease.fence());
  if (exact()) {
    EXPECT_EQ(retry.kind(), ClaimKind::retry);
  }
}

TEST_P(VerbContract, AFinalFailureIsNotTriedAgain) {
  Lease lease = claimed("k");
  EXPECT_THAT(service().fail(lease, FailKind::final, "card refused"), IsFailRecorded());
  EXPECT_THAT(claim("k"), FailedWith("card refused"));
  advance(23h);
  EXPECT_THAT(claim("k"), FailedWith("card refused"));
}

// H06: past its TTL a record counts as absent, though nothing has deleted it.
TEST_P(VerbContract, H06ExpiredCountsAsAbsentBeforeItIsDeleted) {
  CallOptions brief;
  brief.policy.lease = 500ms;
  brief.policy.result_ttl = 1s;
  brief.policy.failed_ttl = 1s;
  for (const char* key : {"k1", "k2", "k4"}) {
    Lease lease = claimed(key, "body", brief);
    EXPECT_THAT(service().complete(lease, "R", brief), IsCompleted());
  }
  Lease failing = claimed("k3", "body", brief);
  EXPECT_THAT(service().fail(failing, FailKind::final, "no", Micros(0), brief), IsFailRecorded());
  advance(900ms);
  EXPECT_THAT(claim("k1"), ReplayOf("R"));
  advance(99ms);
  EXPECT_THAT(claim("k1"), ReplayOf("R"));
  EXPECT_THAT(claim("k3"), FailedWith("no"));
  advance(1ms);
  EXPECT_THAT(service().get(Key("k4")), IsAbsent()) << "equality is over";
  expect_count(store().stats().value().records(), 4);  // though all of it is still there
  const auto again = claim("k1");
  EXPECT_THAT(again, IsClaimed(::testing::AllOf(AttemptIs(1), PreviousFence(0u))));
  EXPECT_THAT(claim("k2", "another body"), IsClaimed(AttemptIs(1)));
  EXPECT_THAT(claim("k3"), IsClaimed(AttemptIs(1)));
  EXPECT_THAT(claim("k2"), IsMismatch()) << "the new incarnation has the new hash";
}

// H07: an expiry in 2039 and in 2124 can be stored; what is over the cap is refused.
TEST_P(VerbContract, H07VeryLongLifetimes) {
  for (const Duration d : {Duration(720h), Duration(kDurationMax)}) {
    const std::string key = "k" + std::to_string(d.micros().count());
    CallOptions longer;
    longer.policy.lease = d;
    longer.policy.result_ttl = d;
    Lease lease = claimed(key, "body", longer);
    EXPECT_EQ(lease.lease_left(), d.micros());
    advance(1s);
    EXPECT_THAT(claim(key), IsInProgress(RetryAfter(d.micros() - Micros(1s))));
    EXPECT_THAT(service().complete(lease, "R", longer), IsCompleted());
    advance(1s);
    EXPECT_THAT(claim(key), ReplayOf("R"));
  }
  CallOptions endless;
  endless.policy.lease = std::chrono::hours::max();
  EXPECT_THAT(claim("h", "body", endless), HasError(errc::invalid_argument));
  endless.policy.lease = std::chrono::milliseconds::max();
  EXPECT_THAT(claim("h", "body", endless), HasError(errc::invalid_argument));
  endless.policy.lease = kDurationMax + Micros(1);
  EXPECT_THAT(claim("h", "body", endless), HasError(errc::invalid_argument));
  EXPECT_THAT(service().get(Key("h")), IsAbsent());
}

// H13: the same key for another request; every state answers Mismatch before anything else.
TEST_P(VerbContract, H13AnotherRequestNeverSeesAResult) {
  Lease lease = claimed("K1", R"({"amount":100,"currency":"CNY"})");
  EXPECT_THAT(service().complete(lease, "R1"), IsCompleted());
  const Record before = record("K1");
  EXPECT_THAT(claim("K1", "another"), IsMismatch());
  Request last_byte = request("K1", R"({"amount":100,"currency":"CNY"})");
  last_byte.fingerprint.bytes.back() ^= 1;
  EXPECT_THAT(service().claim(last_byte), IsMismatch());
  EXPECT_EQ(record("K1"), before) << "attempt, expiry and token as before";
  EXPECT_THAT(claim("K1", R"({"amount":100,"currency":"CNY"})"), ReplayOf("R1"));
}

TEST_P(VerbContract, EveryByteOfTheHashIsCompared) {
  const Lease lease = claimed("k");
  for (std::size_t i = 0; i < 32; ++i) {
    for (const std::uint8_t bit : {std::uint8_t{1}, std::uint8_t{0x80}}) {
      Request other = request("k");
      other.fingerprint.bytes[i] ^= bit;
      EXPECT_THAT(service().claim(other), IsMismatch()) << "byte " << i;
    }
  }
  EXPECT_THAT(claim("k"), IsInProgress());
}

// Own token and other hash: still another request.
TEST_P(VerbContract, OwnTokenDoesNotExcuseAnotherHash) {
  const Lease lease = claimed("k");
  CallOptions same;
  same.owner = lease.token().owner;
  EXPECT_THAT(claim("k", "another", same), IsMismatch());
  advance(30s);
  EXPECT_THAT(claim("k", "another", same), IsMismatch());
  EXPECT_EQ(record("k").token(), lease.token());
}

TEST_P(VerbContract, AReplaySaysWhetherItIsTheCallersOwn) {
  Lease lease = claimed("k");
  EXPECT_THAT(service().complete(lease, "R"), IsCompleted());
  CallOptions same;
  same.owner = lease.token().owner;
  EXPECT_THAT(claim("k", "body", same), IsReplay(Own()));
  EXPECT_THAT(claim("k"), IsReplay(::testing::Not(Own())));
}

TEST_P(VerbContract, WithoutTheOriginalResultADuplicateIsAlreadyDone) {
  CallOptions terse;
  terse.policy.return_original_result = false;
  Lease lease = claimed("k", "body", terse);
  EXPECT_THAT(service().complete(lease, "R"), IsCompleted());
  EXPECT_THAT(claim("k", "body", terse), IsAlreadyDone());
  EXPECT_THAT(claim("k", "another", terse), IsMismatch());
}

TEST_P(VerbContract, DisabledRunsEveryTimeAndStoresNothing) {
  CallOptions off;
  off.policy.enabled = false;
  for (int i = 0; i < 3; ++i) {
    Lease lease = claimed("k", "body", off);
    EXPECT_EQ(lease.kind(), ClaimKind::bypass);
    EXPECT_THAT(service().complete(lease, "R"), IsCompleted());
  }
  EXPECT_EQ(store().stats().value().records(), 0u);
}

}  // namespace
}  // namespace idem::conformance
