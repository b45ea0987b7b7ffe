// wait() and claim_or_wait(): many waiters, one deadline each, no busy store.
#include <gtest/gtest.h>

#include <atomic>
#include <latch>
#include <thread>

#include "idem/service.hpp"
#include "idem/testing/fault_store.hpp"
#include "idem/testing/matchers.hpp"
#include "idem/testing/recording_store.hpp"
#include "idem/testing/reference_store.hpp"

namespace idem {
namespace {

using namespace std::chrono_literals;
using namespace testing;  // NOLINT: the matchers

// A store that cannot watch: the hub must poll it. Counts the reads.
class PolledStore final : public ForwardingStore {
 public:
  using ForwardingStore::ForwardingStore;
  void load(std::span<Load> ops) override {
    reads += ops.size();
    ForwardingStore::load(ops);
  }
  bool watch(KeyRef /*key*/, std::function<void()> /*changed*/) override { return false; }
  std::atomic<std::uint64_t> reads{0};
};

// Runs over a store that can watch and one that cannot, on the real clock: waiting threads and a
// virtual clock that somebody must advance would test the test.
class Waiting : public ::testing::TestWithParam<bool> {
 protected:
  static constexpr int kWaiters = 50;

  static Request request() { return {"hot", Fingerprint::of_bytes("hot")}; }
  CallOptions lease(Duration lease) {
    CallOptions options;
    options.policy.lease = lease;
    return options;
  }

  // Starts the waiters; returns once each is about to wait.
  void start_waiters(Duration limit) {
    for (int i = 0; i < kWaiters; ++i) {
      threads_.emplace_back([this, limit] {
        about_to_wait_.count_down();
        auto outcome = service_.claim_or_wait(request(), limit, lease(600s));
        if (!outcome) {
          ++errors_;
        } else if (auto* claimed = std::get_if<Claimed>(&*outcome)) {
          ++claims_;
          EXPECT_THAT(service_.complete(claimed->lease, "second"), IsCompleted());
        } else if (const auto* replay = std::get_if<Replay>(&*outcome)) {
          ++(replay->result == "first" ? first_ : second_);
        } else if (std::holds_alternative<InProgress>(*outcome)) {
          ++in_progress_;
        }
      });
    }
    about_to_wait_.wait();
    while (service_.counters()[Counter::in_progress] < kWaiters) std::this_thread::yield();
  }
  void join() {
    for (std::thread& thread : threads_) thread.join();
    EXPECT_EQ(errors_, 0);
  }

  std::shared_ptr<PolledStore> polled_ =
      std::make_shared<PolledStore>(std::make_shared<ReferenceStore>(system_clock()));
  StorePtr store_ =
      GetParam() ? std::make_shared<ReferenceStore>(system_clock()) : StorePtr(polled_);
  IdempotencyService service_{store_};
  std::latch about_to_wait_{kWaiters};
  std::vector<std::thread> threads_;
  std::atomic<int> claims_{0}, first_{0}, second_{0}, in_progress_{0}, errors_{0};
};

TEST_P(Waiting, H08CompletionIsReplayedToEveryWaiter) {
  auto owner = service_.claim(request(), lease(600s));
  start_waiters(30s);
  EXPECT_THAT(service_.complete(std::get<Claimed>(*owner).lease, "first"), IsCompleted());
  join();
  EXPECT_EQ(first_, kWaiters);
}

TEST_P(Waiting, H08AfterAFailureOneWaiterTakesOverAndTheOthersReplayIt) {
  auto owner = service_.claim(request(), lease(600s));
  start_waiters(30s);
  EXPECT_THAT(service_.fail(std::get<Claimed>(*owner).lease, FailKind::retryable, "503"),
              IsFailRecorded());
  join();
  EXPECT_EQ(claims_, 1);
  EXPECT_EQ(second_, kWaiters - 1);
}

TEST_P(Waiting, H08AfterAReleaseOneWaiterTakesOverAndTheOthersReplayIt) {
  auto owner = service_.claim(request(), lease(600s));
  start_waiters(30s);
  EXPECT_THAT(service_.release(std::get<Claimed>(*owner).lease), IsReleased());
  join();
  EXPECT_EQ(claims_, 1);
  EXPECT_EQ(second_, kWaiters - 1);
}

TEST_P(Waiting, H08WhenTheLeaseEndsOneWaiterTakesOver) {
  auto owner = service_.claim(request(), lease(500ms));
  start_waiters(30s);
  join();
  EXPECT_EQ(claims_, 1);
  EXPECT_EQ(second_, kWaiters - 1);
  EXPECT_EQ(service_.counters()[Counter::claimed_takeover], 1U);
}

TEST_P(Waiting, H08AtTheLimitEveryWaiterHearsInProgressAndTheStoreWasReadSeldom) {
  auto owner = service_.claim(request(), lease(600s));
  const Time start = system_clock().now();
  start_waiters(2s);
  join();
  EXPECT_EQ(in_progress_, kWaiters);
  EXPECT_LE(polled_->reads, 40U);
  EXPECT_LT(system_clock().now() - start, 20s);  // a hang, not a measurement
}

INSTANTIATE_TEST_SUITE_P(Stores, Waiting, ::testing::Bool(),
                         [](const auto& which) { return which.param ? "Watched" : "Polled"; });

// On a virtual clock nothing runs by itself; one thread waits, the other lets time go by.
TEST(WaitingOnAVirtualClock, EndsWhenTheClockReachesTheLimitOrTheLeasesEnd) {
  VirtualClock clock;
  const auto store = std::make_shared<PolledStore>(std::make_shared<ReferenceStore>(clock));
  IdempotencyService service(
      store, {.policy = {}, .biz_types = {}, .timeout = 5s, .clock = &clock, .observer = {}});
  const Request request{"k", Fingerprint::of_bytes("k")};
  auto owner = service.claim(request);
  std::atomic<bool> first_over{false}, over{false};
  std::thread waiter([&] {
    // Of the last read: of the first one if the limit came before a second.
    EXPECT_THAT(service.wait(request, 10s),
                AnyOf(IsInProgress(RetryAfter(20s)), IsInProgress(RetryAfter(30s))));
    first_over = true;
    EXPECT_THAT(service.wait(request, 1h), IsClaimable());
    over = true;
  });
  while (store->reads == 0) std::this_thread::yield();  // its limit is set by then
  clock.advance(10s);
  while (!first_over) std::this_thread::yield();
  while (!over) {
    clock.advance(10s);
    std::this_thread::yield();
  }
  waiter.join();
}

TEST(Wait, SeesEveryStateWithoutWriting) {
  VirtualClock clock;
  const auto store = std::make_shared<ReferenceStore>(clock);
  IdempotencyService service(
      store, {.policy = {}, .biz_types = {}, .timeout = 5s, .clock = &clock, .observer = {}});
  const auto request = [](const std::string& key) {
    return Request{key, Fingerprint::of_bytes(key)};
  };
  const auto claimed = [&](const std::string& key) {
    return std::move(std::get<Claimed>(*service.claim(request(key))).lease);
  };
  EXPECT_THAT(service.wait(request("absent"), 1s), IsClaimable());
  Lease done = claimed("done");
  EXPECT_THAT(service.complete(done, "r"), IsCompleted());
  EXPECT_THAT(service.wait(request("done"), 1s), ReplayOf("r"));
  EXPECT_THAT(service.wait({"done", Fingerprint::of_bytes("other")}, 1s), IsMismatch());
  Lease failed = claimed("failed");
  EXPECT_THAT(service.fail(failed, FailKind::final, "no"), IsFailRecorded());
  EXPECT_THAT(service.wait(request("failed"), 1s), FailedWith("no"));
  Lease retryable = claimed("retryable");
  EXPECT_THAT(service.fail(retryable, FailKind::retryable, "503"), IsFailRecorded());
  EXPECT_THAT(service.wait(request("retryable"), 1s), IsClaimable());
  EXPECT_THAT(service.wait({"", Fingerprint{}}, 1s), HasError(errc::invalid_argument));
}

}  // namespace
}  // namespace idem
