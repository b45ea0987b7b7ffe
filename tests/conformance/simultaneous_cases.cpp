// Concurrency: many callers of the service at once (acceptance scenario H01).
#include <gtest/gtest.h>

#include <atomic>
#include <barrier>
#include <string>

#include "idem/conformance/suites.hpp"
#include "idem/testing/describe.hpp"
#include "threads.hpp"

namespace idem::conformance {
namespace {

using namespace std::chrono_literals;

constexpr std::string_view kResult = R"({"id":"P1"})";

struct Tally {
  std::atomic<int> claimed{0};
  std::atomic<int> in_progress{0};
  std::atomic<int> replayed{0};
  std::atomic<int> other{0};  // errors, wrong bytes, any outcome that should not be
};

Request payment(int i) {
  return {Key("pay-20240101-" + std::to_string(i)), Fingerprint::of_bytes("{\"amount\":100}")};
}

// Counts the outcome; the claim's lease, if it was one.
std::optional<Lease> count(result<ClaimOutcome> outcome, Tally& tally) {
  if (outcome.has_error()) {
    ++tally.other;
    return std::nullopt;
  }
  if (auto* claimed = std::get_if<Claimed>(&*outcome)) {
    ++tally.claimed;
    return std::move(claimed->lease);
  }
  const auto* replay = std::get_if<Replay>(&*outcome);
  if (replay != nullptr && replay->result == kResult) {
    ++tally.replayed;
  } else if (std::holds_alternative<InProgress>(*outcome)) {
    ++tally.in_progress;
  } else {
    ++tally.other;
  }
  return std::nullopt;
}

// H01: 64 threads meet at each of 1,000 keys; each key's business runs once.
TEST_P(Concurrency, H01SimultaneousFirstRequests) {
  constexpr int kKeys = kSlowBuild ? 50 : 1000;
  constexpr int kCallers = 64;
  IdempotencyService service(shared_store());
  Tally tally;
  std::barrier<> meet(kCallers);
  in_threads(kCallers, [&](std::size_t) {
    for (int i = 0; i < kKeys; ++i) {
      meet.arrive_and_wait();
      auto lease = count(service.claim(payment(i)), tally);
      if (i % 2 == 0) meet.arrive_and_wait();  // the owner works until all others were answered
      if (!lease) continue;
      const auto done = service.complete(*lease, kResult);
      if (done.has_error() || !std::holds_alternative<Completed>(*done)) ++tally.other;
    }
  });
  EXPECT_EQ(tally.claimed, kKeys);
  EXPECT_EQ(tally.other, 0);
  EXPECT_EQ(tally.in_progress + tally.replayed, kKeys * (kCallers - 1));
  EXPECT_GE(tally.in_progress, kKeys / 2 * (kCallers - 1));
  RecordProperty("claimed", tally.claimed);

  Tally late;  // a second arrival
  for (int i = 0; i < kKeys; ++i) (void)count(service.claim(payment(i)), late);
  EXPECT_EQ(late.replayed, kKeys);
}

// H01, wait mode: all but one wait and get the one's result.
TEST_P(Concurrency, H01WaitersGetTheFirstResult) {
  constexpr int kKeys = kSlowBuild ? 5 : 20;
  constexpr int kCallers = 16;
  IdempotencyService service(shared_store());
  Tally tally;
  std::barrier<> meet(kCallers);
  std::vector<std::atomic<int>> arrived(kKeys);
  in_threads(kCallers, [&](std::size_t) {
    for (int i = 0; i < kKeys; ++i) {
      meet.arrive_and_wait();
      auto& here = arrived[static_cast<std::size_t>(i)];
      ++here;
      auto lease = count(service.claim_or_wait(payment(i), 20s), tally);
      if (!lease) continue;
      while (here != kCallers)
        std::this_thread::yield();  // the others wait by now, or are about to
      const auto done = service.complete(*lease, kResult);
      if (done.has_error() || !std::holds_alternative<Completed>(*done)) ++tally.other;
    }
  });
  EXPECT_EQ(tally.claimed, kKeys);
  EXPECT_EQ(tally.replayed, kKeys * (kCallers - 1));
  EXPECT_EQ(tally.in_progress, 0);
  EXPECT_EQ(tally.other, 0);
}

// H08 (b), (c): when the owner gives up, exactly one waiter takes over; the rest go on waiting.
TEST_P(Concurrency, H08WhenTheOwnerGivesUpOneWaiterTakesOver) {
  constexpr int kCallers = kSlowBuild ? 8 : 16;
  for (const bool releases : {false, true}) {
    IdempotencyService service(shared_store());
    const Request request = payment(releases ? 1 : 0);
    auto owner = service.claim(request);
    ASSERT_TRUE(owner.has_value() && std::holds_alternative<Claimed>(*owner));
    Lease& owned = std::get<Claimed>(*owner).lease;
    Tally tally;
    std::atomic<int> arrived{0};
    in_threads(kCallers + 1, [&](std::size_t thread) {
      if (thread == kCallers) {
        while (arrived != kCallers) std::this_thread::yield();
        if (releases) {
          if (!service.release(owned).has_value()) ++tally.other;
        } else {
          if (!service.fail(owned, FailKind::retryable, "503").has_value()) ++tally.other;
        }
        return;
      }
      ++arrived;
      auto lease = count(service.claim_or_wait(request, 20s), tally);
      if (lease && !service.complete(*lease, kResult).has_value()) ++tally.other;
    });
    EXPECT_EQ(tally.claimed, 1);
    EXPECT_EQ(tally.replayed, kCallers - 1);
    EXPECT_EQ(tally.other, 0);
  }
}

// H12: two batches of the same 200 keys, one in reverse order: one owner each, in every round.
TEST_P(Concurrency, H12BatchClaimsInOppositeOrder) {
  constexpr int kRounds = kSlowBuild ? 3 : 15;
  constexpr int kKeys = 200;
  IdempotencyService service(shared_store());
  for (int round = 0; round < kRounds; ++round) {
    Tally tally;
    std::barrier<> meet(2);
    in_threads(2, [&](std::size_t thread) {
      std::vector<Request> requests;
      for (int i = 0; i < kKeys; ++i) {
        requests.push_back(payment(round * kKeys + (thread == 0 ? i : kKeys - 1 - i)));
      }
      meet.arrive_and_wait();
      for (auto& outcome : service.claim_many(requests)) (void)count(std::move(outcome), tally);
    });
    ASSERT_EQ(tally.claimed, kKeys);
    ASSERT_EQ(tally.in_progress, kKeys);
    ASSERT_EQ(tally.other, 0);
  }
}

}  // namespace
}  // namespace idem::conformance
