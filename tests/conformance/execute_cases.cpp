// VerbContract: execute, its heartbeat, shutdown and the counters.
#include <stdexcept>
#include <vector>

#include "verb_matchers.hpp"

namespace idem::conformance {
namespace {

using namespace std::chrono_literals;
using namespace idem::testing;

TEST_P(VerbContract, ExecuteRunsOnceAndReplays) {
  int runs = 0;
  const auto pay = [&](Attempt&) {
    ++runs;
    return std::string("ok:100");
  };
  EXPECT_THAT(service().execute(request("k"), pay), ExecutedWith("ok:100"));
  for (int i = 0; i < 3; ++i) EXPECT_THAT(service().execute(request("k"), pay), ReplayOf("ok:100"));
  EXPECT_THAT(service().execute(request("k", "another"), pay), IsMismatch());
  EXPECT_EQ(runs, 1);
}

// H02: the callback throws; the event is delivered again.
TEST_P(VerbContract, H02AnExceptionFailsTheClaimAndIsThrownOn) {
  struct Odd {};
  for (const bool standard : {true, false}) {
    const Request event = request(standard ? "evt-77" : "evt-78");
    int runs = 0;
    const auto work = [&](Attempt& attempt) -> std::string {
      ++runs;
      if (attempt.attempt() > 1) return "done";
      if (standard) throw std::runtime_error("boom");
      throw Odd{};
    };
    if (standard) {
      EXPECT_THROW((void)service().execute(event, work), std::runtime_error);
    } else {
      EXPECT_THROW((void)service().execute(event, work), Odd);
    }
    EXPECT_THAT(service().get(event.key), IsFound(Status::failed)) << "never processing";
    EXPECT_THAT(
        service().execute(event, work),
        IsExecuted(::testing::AllOf(AttemptIs(2), ::testing::Field(&Executed::result, "done"))));
    EXPECT_THAT(service().execute(event, work), ReplayOf("done"));
    EXPECT_EQ(runs, 2);
  }
}

TEST_P(VerbContract, ExecuteStoresWhatTheActionSays) {
  const auto says = [&](const char* key, const Verdict& verdict) {
    return service().execute(request(key), [&](Attempt&) { return verdict; });
  };
  EXPECT_THAT(says("final", Final{"card refused"}), IsActionFailed());
  EXPECT_THAT(claim("final"), FailedWith("card refused"));
  EXPECT_THAT(says("later", Retryable{"503", 10s}), IsActionFailed());
  EXPECT_THAT(claim("later"), IsBackoff(RetryAfter(10s)));
  EXPECT_THAT(says("soon", Retryable{"503", {}}), IsActionFailed());
  EXPECT_THAT(claim("soon"), IsClaimed(AttemptIs(2)));
  EXPECT_THAT(says("nothing", NothingDone{}), IsReleased());
  EXPECT_THAT(service().get(Key("nothing")), IsAbsent());
}

TEST_P(VerbContract, ALaterAttemptThatDidNothingForgetsNoEarlierOne) {
  Lease first = claimed("k");
  ASSERT_THAT(service().fail(first, FailKind::retryable, "503"), IsFailRecorded());
  const auto nothing = [](Attempt&) { return NothingDone{}; };
  EXPECT_THAT(service().execute(request("k"), nothing), IsActionFailed());
  EXPECT_THAT(service().get(Key("k")), IsFound(Status::failed));
  EXPECT_THAT(service().claim(request("k", "another")), IsMismatch());
  auto third = service().claim(request("k"));
  ASSERT_THAT(third, IsClaimed(AttemptIs(3)));
  Lease elsewhere = Lease::adopt(request("k"), std::get<Claimed>(*third).lease.token(), 3);
  EXPECT_THAT(service().report(elsewhere, NothingDone{}), IsActionFailed());
  EXPECT_THAT(service().claim(request("k")), IsClaimed(AttemptIs(4)));
}

TEST_P(VerbContract, ExecuteDoesNotRunWhileAnotherDoes) {
  const Lease other = claimed("k");
  bool ran = false;
  EXPECT_THAT(service().execute(request("k"),
                                [&](Attempt&) {
                                  ran = true;
                                  return std::string("R");
                                }),
              IsInProgress());
  EXPECT_FALSE(ran);
}

// The heartbeat keeps the lease of a long action alive.
TEST_P(VerbContract, TheHeartbeatKeepsALongActionsLease) {
  const auto outcome = service().execute(request("k"), [&](Attempt& attempt) {
    for (int second = 0; second < 120; ++second) {
      advance(1s);
      EXPECT_FALSE(attempt.stop_token().stop_requested()) << "second " << second;
    }
    EXPECT_THAT(claim("k"), IsInProgress(AttemptIs(1)));
    return std::string("R");
  });
  EXPECT_THAT(outcome, IsExecuted());
  EXPECT_THAT(claim("k"), ReplayOf("R"));
}

// An action whose lease was taken over while it ran is told Lost, never a success.
TEST_P(VerbContract, AnActionThatLostItsLeaseIsNoSuccess) {
  const auto outcome = service().execute(request("k"), [&](Attempt&) {
    store_clock().advance(30s);  // only the store's: no heartbeat came through
    Lease successor = claimed("k");
    EXPECT_THAT(service().complete(successor, "B-result"), IsCompleted());
    return std::string("A-result");
  });
  EXPECT_THAT(outcome, LostTo("B-result"));
  EXPECT_THAT(claim("k"), ReplayOf("B-result"));
}

TEST_P(VerbContract, AStopTokenFiresWhenTheLeaseIsLost) {
  const auto outcome = service().execute(request("k"), [&](Attempt& attempt) {
    store_clock().advance(30s);
    const Lease successor = claimed("k");
    EXPECT_FALSE(attempt.stop_token().stop_requested());
    caller_clock().advance(10s);  // the heartbeat is due, and finds it out
    EXPECT_TRUE(attempt.stop_token().stop_requested());
    return std::string("A-result");
  });
  EXPECT_THAT(outcome, IsLost());
  EXPECT_EQ(record("k").attempt, 2u);
}

TEST_P(VerbContract, ShutdownRefusesNewCallsAndLeavesLeases) {
  const Lease working = claimed("working");
  const auto closing = service_with(Policy{});
  auto own = closing->claim(request("own"));
  ASSERT_THAT(own, IsClaimed());
  closing->shutdown(1s);
  EXPECT_THAT(closing->claim(request("k")), HasError(errc::shutting_down));
  EXPECT_THAT(closing->wait(request("working"), 10s), HasError(errc::shutting_down));
  EXPECT_THAT(closing->claim_or_wait(request("working"), 10s), HasError(errc::shutting_down));
  closing->shutdown(1s);
  EXPECT_THAT(claim("own"), IsInProgress()) << "work that may still run keeps its lease";
  EXPECT_THAT(service().get(Key("k")), IsAbsent());
}

// The books balance: every claim that was given ended, or still runs.
TEST_P(VerbContract, CountersTellWhatHappened) {
  IDEM_EXACT_ONLY();
  Lease a = claimed("a");
  EXPECT_THAT(service().complete(a, "R"), IsCompleted());
  EXPECT_THAT(service().complete(a, "R"), IsCompleted(Already()));
  EXPECT_THAT(service().complete(a, "S"), ConflictWith("R"));
  EXPECT_THAT(claim("a"), IsReplay());
  EXPECT_THAT(claim("a", "x"), IsMismatch());
  Lease b = claimed("b");
  EXPECT_THAT(claim("b"), IsInProgress());
  EXPECT_THAT(service().fail(b, FailKind::retryable, "503"), IsFailRecorded());
  Lease retry = claimed("b");
  advance(30s);
  Lease taken = claimed("b");
  EXPECT_THAT(service().complete(retry, "ghost"), IsLost());
  EXPECT_THAT(service().renew(taken), IsRenewed());
  EXPECT_THAT(service().release(taken), IsReleased());
  const Counters counters = service().counters();
  EXPECT_EQ(counters[Counter::claimed_fresh], 2u);
  EXPECT_EQ(counters[Counter::claimed_retry], 1u);
  EXPECT_EQ(counters[Counter::claimed_takeover], 1u);
  EXPECT_EQ(counters[Counter::in_progress], 1u);
  EXPECT_EQ(counters[Counter::replayed], 1u);
  EXPECT_EQ(counters[Counter::mismatched], 1u);
  EXPECT_EQ(counters[Counter::completed], 1u);
  EXPECT_EQ(counters[Counter::completed_already], 1u);
  EXPECT_EQ(counters[Counter::conflict], 1u);
  EXPECT_EQ(counters[Counter::failed], 1u);
  EXPECT_EQ(counters[Counter::lost], 1u);
  EXPECT_EQ(counters[Counter::renewed], 1u);
  EXPECT_EQ(counters[Counter::released], 1u);
  EXPECT_EQ(counters[Counter::errors], 0u);
}

}  // namespace
}  // namespace idem::conformance
