// execute(): running the caller's action under a claim and a heartbeat.
#include <gtest/gtest.h>

#include <atomic>
#include <latch>
#include <thread>

#include "idem/service.hpp"
#include "idem/testing/fault_store.hpp"
#include "idem/testing/matchers.hpp"
#include "idem/testing/reference_store.hpp"

namespace idem {
namespace {

using namespace std::chrono_literals;
using namespace testing;  // NOLINT: the matchers

class Execute : public ::testing::Test {
 protected:
  static Request request(const std::string& key) { return {key, Fingerprint::of_bytes(key)}; }
  static CallOptions lease(Duration lease) {
    CallOptions options;
    options.policy.lease = lease;
    return options;
  }

  VirtualClock clock_;
  std::shared_ptr<FaultStore> store_ =
      std::make_shared<FaultStore>(std::make_shared<ReferenceStore>(clock_), clock_);
  ServiceOptions options_{
      .policy = {}, .biz_types = {}, .timeout = 5s, .clock = &clock_, .observer = {}};
  IdempotencyService service_{store_, options_};
};

TEST_F(Execute, RunsOnceAndReplaysTheFirstResult) {
  int runs = 0;
  const auto action = [&](Attempt&) { return "result-" + std::to_string(++runs); };
  EXPECT_THAT(service_.execute(request("k"), action), ExecutedWith("result-1"));
  EXPECT_THAT(service_.execute(request("k"), action), ReplayOf("result-1"));
  EXPECT_EQ(runs, 1);
}

// H02: an exception must free the key at once, whatever its type.
TEST_F(Execute, H02AThrowingActionIsRetriedWithoutWaitingForTheLease) {
  const auto throws_std = [](Attempt&) -> std::string { throw std::runtime_error("503"); };
  const auto throws_int = [](Attempt&) -> std::string { throw 42; };
  EXPECT_THROW((void)service_.execute(request("evt-77"), throws_std), std::runtime_error);
  EXPECT_THAT(service_.get({"", "", "evt-77"}), IsFound(Status::failed));
  int attempt = 0;
  EXPECT_THAT(service_.execute(request("evt-77"),
                               [&](Attempt& a) {
                                 attempt = static_cast<int>(a.attempt());
                                 return std::string("ok");
                               }),
              ExecutedWith("ok"));
  EXPECT_EQ(attempt, 2);
  EXPECT_THAT(service_.execute(request("evt-77"), throws_int), ReplayOf("ok"));
  EXPECT_THROW((void)service_.execute(request("evt-78"), throws_int), int);
  EXPECT_EQ(service_.get({"", "", "evt-78"})->value().record.result,
            "exception: not derived from std::exception");
}

TEST_F(Execute, VerdictsEndTheClaimAsTheySay) {
  EXPECT_THAT(service_.execute(request("r"),
                               [](Attempt&) {
                                 return Retryable{"later", 10s};
                               }),
              IsActionFailed());
  EXPECT_THAT(service_.claim(request("r")), IsBackoff(RetryAfter(10s)));
  EXPECT_THAT(service_.execute(request("f"), [](Attempt&) { return Final{"never"}; }),
              IsActionFailed());
  EXPECT_THAT(service_.claim(request("f")), FailedWith("never"));
  EXPECT_THAT(service_.execute(request("n"), [](Attempt&) { return NothingDone{}; }), IsReleased());
  EXPECT_THAT(service_.get({"", "", "n"}), IsAbsent());
}

TEST_F(Execute, TheHeartbeatKeepsALongActionsLease) {
  EXPECT_THAT(service_.execute(
                  request("slow"),
                  [&](Attempt& attempt) {
                    for (int i = 0; i < 100; ++i) {
                      clock_.advance(10s);
                      EXPECT_FALSE(attempt.stop_token().stop_requested()) << i;
                      EXPECT_THAT(service_.claim(request("slow")), IsInProgress());
                    }
                    return std::string("done");
                  },
                  lease(30s)),
              ExecutedWith("done"));
  EXPECT_GE(service_.counters()[Counter::in_progress], 100U);
}

// A renewal that gets no answer leaves the owner unsure: it must stop before another one starts.
TEST_F(Execute, WithoutAConfirmedRenewalTheActionIsStoppedBeforeItsLeaseEnds) {
  bool stopped_in_time = false;
  const auto outcome = service_.execute(
      request("cut"),
      [&](Attempt& attempt) {
        store_->on_every_call(Verb::replace, Fault::refuse);
        clock_.advance(26s);
        EXPECT_FALSE(attempt.stop_token().stop_requested());
        clock_.advance(3s);
        stopped_in_time = attempt.stop_token().stop_requested();
        store_->calm();
        return std::string("not to be trusted");
      },
      lease(30s));
  EXPECT_TRUE(stopped_in_time);
  EXPECT_THAT(outcome, IsLost());
  EXPECT_THAT(service_.get({"", "", "cut"}), IsFound(Status::processing));
  clock_.advance(30s);
  EXPECT_THAT(service_.claim(request("cut")), IsClaimed(Kind(ClaimKind::takeover)));
}

// Who guards work from outside must know how long nobody else may begin.
TEST_F(Execute, TheSafeDeadlineMovesWithConfirmedRenewalsOnly) {
  const auto outcome = service_.execute(
      request("guarded"),
      [&](Attempt& attempt) {
        const Time sent = clock_.now();
        EXPECT_EQ(attempt.safe_until(), sent + 29s);
        clock_.advance(10s);
        EXPECT_EQ(attempt.safe_until(), sent + 39s);
        store_->on_every_call(Verb::replace, Fault::refuse);
        clock_.advance(28s);
        EXPECT_EQ(attempt.safe_until(), sent + 39s);
        EXPECT_FALSE(attempt.stop_token().stop_requested());
        clock_.advance(1s);
        EXPECT_TRUE(attempt.stop_token().stop_requested());
        store_->calm();
        return std::string();
      },
      lease(30s));
  EXPECT_THAT(outcome, IsLost());
  CallOptions off;
  off.policy.enabled = false;
  EXPECT_THAT(service_.execute(
                  request("off"),
                  [](Attempt& attempt) {
                    EXPECT_EQ(attempt.safe_until(), Time::max());
                    return std::string("free");
                  },
                  off),
              ExecutedWith("free"));
}

TEST_F(Execute, LosingTheLeaseStopsTheActionAndIsNoSuccess) {
  bool stopped = false;
  const auto outcome = service_.execute(
      request("lost"),
      [&](Attempt& attempt) {
        EXPECT_THAT(service_.force_release({"", "", "lost"}, attempt.fence()), IsDone());
        EXPECT_THAT(service_.claim(request("lost")), IsClaimed());
        clock_.advance(10s);
        stopped = attempt.stop_token().stop_requested();
        return std::string("mine");
      },
      lease(30s));
  EXPECT_TRUE(stopped);
  EXPECT_THAT(outcome, IsLost());
}

TEST_F(Execute, ADisabledPolicyRunsEveryTimeAndStoresNothing) {
  CallOptions off;
  off.policy.enabled = false;
  int runs = 0;
  for (int i = 0; i < 3; ++i) {
    EXPECT_THAT(service_.execute(
                    request("off"), [&](Attempt&) { return std::to_string(++runs); }, off),
                ExecutedWith(std::to_string(i + 1)));
  }
  EXPECT_EQ(store_->stats()->records(), 0U);
}

TEST_F(Execute, ADroppedLeaseSaysNothingAndIsTold) {
  (void)service_.claim(request("dropped"));
  EXPECT_EQ(service_.counters()[Counter::dropped], 1U);
  EXPECT_THAT(service_.claim(request("dropped")), IsInProgress());
}

// H09, with the times taken out: who ends, who stops early, who ignores the stop.
TEST_F(Execute, H09ShutdownStopsWhatListensAndWaitsOnlyForTheGrace) {
  constexpr int kEnding = 15, kListening = 3, kDeaf = 2;
  std::latch started(kEnding + kListening + kDeaf);
  std::latch let_end(1), let_deaf(1);
  std::vector<std::thread> threads;
  const auto start = [&](const std::string& key, auto action) {
    threads.emplace_back([&, key, action] {
      (void)service_.execute(
          request(key),
          [&](Attempt& attempt) -> Verdict {
            started.count_down();
            return action(attempt);
          },
          lease(600s));
    });
  };
  for (int i = 0; i < kEnding; ++i) {
    start("end" + std::to_string(i), [&](Attempt&) -> Verdict {
      let_end.wait();
      return "done";
    });
  }
  for (int i = 0; i < kListening; ++i) {
    start("listen" + std::to_string(i), [&](Attempt& attempt) -> Verdict {
      std::latch stopped(1);
      const std::stop_callback on_stop(attempt.stop_token(), [&] { stopped.count_down(); });
      stopped.wait();
      return NothingDone{};
    });
  }
  for (int i = 0; i < kDeaf; ++i) {
    start("deaf" + std::to_string(i), [&](Attempt&) -> Verdict {
      let_deaf.wait();
      return "late";
    });
  }
  started.wait();
  std::latch waiting(10);
  for (int i = 0; i < 10; ++i) {
    threads.emplace_back([&] {
      waiting.count_down();
      EXPECT_THAT(service_.wait(request("deaf0"), 1h), HasError(errc::shutting_down));
    });
  }
  waiting.wait();
  std::atomic<bool> shut{false};
  std::thread shutdown([&] {
    service_.shutdown(1s);
    shut = true;
  });
  let_end.count_down();
  // The listening and the ending ones are back when nothing but the deaf is processing.
  IdempotencyService other(store_, options_);
  while (store_->stats()->processing != kDeaf) std::this_thread::yield();
  while (!shut) {  // its grace begins at a time of its own
    clock_.advance(100ms);
    std::this_thread::yield();
  }
  shutdown.join();
  EXPECT_THAT(service_.claim(request("new")), HasError(errc::shutting_down));
  for (int i = 0; i < kEnding; ++i) {
    EXPECT_THAT(other.claim(request("end" + std::to_string(i))), ReplayOf("done"));
  }
  for (int i = 0; i < kListening; ++i) {
    EXPECT_THAT(other.claim(request("listen" + std::to_string(i))), IsClaimed());
  }
  for (int i = 0; i < kDeaf; ++i) {
    EXPECT_THAT(other.claim(request("deaf" + std::to_string(i))), IsInProgress());
  }
  let_deaf.count_down();
  for (std::thread& thread : threads) thread.join();
  service_.shutdown(1s);  // a second one is harmless
}

}  // namespace
}  // namespace idem
