// The asynchronous verbs with callbacks, futures and coroutines, in place and over lanes.
#include <gtest/gtest.h>

#include <boost/asio/bind_allocator.hpp>
#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/bind_executor.hpp>
#include <boost/asio/cancellation_signal.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/thread_pool.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/asio/use_future.hpp>
#include <latch>
#include <thread>

#include "idem/async.hpp"
#include "idem/open.hpp"
#include "idem/testing/fault_store.hpp"
#include "idem/testing/matchers.hpp"
#include "idem/testing/recording_store.hpp"

namespace idem {
namespace {

namespace asio = boost::asio;
using namespace std::chrono_literals;
using namespace testing;  // NOLINT: the matchers

ServiceOptions options_on(Clock& clock) {
  ServiceOptions options;
  options.clock = &clock;
  return options;
}

Request request(std::string key, std::string_view body = "body") {
  return {std::move(key), Fingerprint::of_bytes(body)};
}

// Over a number of lanes; 0: in place.
class AsyncVerbs : public ::testing::TestWithParam<std::size_t> {
 protected:
  template <class T>
  T now(std::future<T> future) {
    io_.restart();
    io_.run();
    return future.get();
  }
  Lease claimed(const std::string& key) {
    auto outcome = now(async_.async_claim(request(key), {}, asio::use_future));
    return std::move(std::get<Claimed>(*outcome).lease);
  }

  asio::io_context io_;  // both outlive the service that posts to them
  asio::thread_pool pool_{1};
  VirtualClock clock_;
  std::shared_ptr<RecordingStore> store_ =
      std::make_shared<RecordingStore>(open("memory:", {.clock = &clock_}).value());
  IdempotencyService service_{store_, options_on(clock_)};
  AsyncService async_{io_.get_executor(), service_, {.lanes = GetParam()}};
};

INSTANTIATE_TEST_SUITE_P(InPlace, AsyncVerbs, ::testing::Values(0U));
INSTANTIATE_TEST_SUITE_P(Lanes, AsyncVerbs, ::testing::Values(1U, 3U));

TEST_P(AsyncVerbs, FuturesGiveTheAnswersOfTheBlockingVerbs) {
  Lease lease = claimed("k");
  EXPECT_THAT(now(async_.async_claim(request("k"), {}, asio::use_future)), IsInProgress());
  EXPECT_THAT(now(async_.async_claim(request("k", "other"), {}, asio::use_future)), IsMismatch());
  EXPECT_THAT(now(async_.async_renew(lease, {}, asio::use_future)), IsRenewed());
  EXPECT_THAT(now(async_.async_complete(lease, "done", {}, asio::use_future)), IsCompleted());
  EXPECT_THAT(now(async_.async_claim(request("k"), {}, asio::use_future)), ReplayOf("done"));
  EXPECT_THAT(now(async_.async_wait(request("k"), 1s, {}, asio::use_future)), ReplayOf("done"));

  Lease second = claimed("second");
  EXPECT_THAT(now(async_.async_release(second, {}, asio::use_future)), IsReleased());
  Lease third = claimed("second");
  EXPECT_THAT(now(async_.async_fail(third, FailKind::final, "no funds", {}, {}, asio::use_future)),
              IsFailRecorded());
  EXPECT_THAT(now(async_.async_claim(request("second"), {}, asio::use_future)),
              FailedWith("no funds"));
}

TEST_P(AsyncVerbs, ACoroutineReadsTopDown) {
  std::string seen;
  asio::co_spawn(
      io_,
      [&]() -> asio::awaitable<void> {
        auto first = co_await async_.async_claim(request("k"));
        auto* won = std::get_if<Claimed>(&*first);
        EXPECT_NE(won, nullptr);
        if (won == nullptr) co_return;
        auto done = co_await async_.async_complete(won->lease, "paid");
        EXPECT_THAT(done, IsCompleted());
        auto again = co_await async_.async_claim_or_wait(request("k"), 1s);
        seen = std::get<Replay>(*again).result;
      },
      [](const std::exception_ptr& thrown) { EXPECT_EQ(thrown, nullptr); });
  io_.run();
  EXPECT_EQ(seen, "paid");
}

// A handler called inside the initiating function would find its caller half-way.
TEST_P(AsyncVerbs, NoHandlerRunsInsideTheInitiatingFunction) {
  bool called = false;
  async_.async_claim(request("k"), {}, [&](result<ClaimOutcome> outcome) {
    EXPECT_THAT(outcome, IsClaimed());
    called = true;
  });
  EXPECT_FALSE(called);
  io_.run();  // the operation in flight is work: run() does not return before
  EXPECT_TRUE(called);
}

TEST_P(AsyncVerbs, HandlersRunOnTheirAssociatedExecutor) {
  std::promise<std::thread::id> where;
  async_.async_claim(request("k"), {}, asio::bind_executor(pool_, [&](const result<ClaimOutcome>&) {
                       where.set_value(std::this_thread::get_id());
                     }));
  const auto ran_on = where.get_future().get();
  std::promise<std::thread::id> pools;
  asio::post(pool_, [&] { pools.set_value(std::this_thread::get_id()); });
  EXPECT_EQ(ran_on, pools.get_future().get());
  EXPECT_EQ(io_.poll(), 0U);  // nothing on the service's own executor
}

// Counts what is taken from and given back to it.
template <class T>
struct CountingAllocator {
  using value_type = T;
  explicit CountingAllocator(std::atomic<int>* taken, std::atomic<int>* held)
      : taken_(taken), held_(held) {}
  template <class U>
  CountingAllocator(const CountingAllocator<U>& other)  // NOLINT: as allocators convert
      : taken_(other.taken_), held_(other.held_) {}
  T* allocate(std::size_t n) {
    ++*taken_;
    ++*held_;
    return std::allocator<T>().allocate(n);
  }
  void deallocate(T* at, std::size_t n) {
    --*held_;
    std::allocator<T>().deallocate(at, n);
  }
  friend bool operator==(const CountingAllocator&, const CountingAllocator&) = default;
  std::atomic<int>* taken_;
  std::atomic<int>* held_;
};

TEST_P(AsyncVerbs, MemoryOfTheAssociatedAllocatorIsGivenBackBeforeTheHandlerRuns) {
  std::atomic<int> taken{0};
  std::atomic<int> held{0};
  int held_in_handler = -1;
  async_.async_claim(
      request("k"), {},
      asio::bind_allocator(CountingAllocator<void*>(&taken, &held),
                           [&](const result<ClaimOutcome>&) { held_in_handler = held; }));
  io_.run();
  EXPECT_GT(taken, 0);
  EXPECT_EQ(held_in_handler, 0);
}

// The clock stands still but for the end of the lease: a lost wake-up hangs, and the successor's
// lease cannot end before it completes. Over lanes some may come to wait after either event.
TEST_P(AsyncVerbs, OneWaiterTakesOverAndTheRestGoOnWaiting) {
  Lease dead = claimed("k");
  int claims = 0;
  int replays = 0;
  std::optional<Lease> successor;
  for (int i = 0; i < 20; ++i) {
    async_.async_claim_or_wait(request("k"), 1h, {}, [&](result<ClaimOutcome> outcome) {
      if (auto* won = std::get_if<Claimed>(&*outcome)) {
        ++claims;
        successor = std::move(won->lease);
      } else {
        EXPECT_THAT(outcome, ReplayOf("second"));
        ++replays;
      }
    });
  }
  io_.restart();
  clock_.advance(Policy{}.lease);
  while (claims == 0) io_.run_one();
  EXPECT_THAT(now(async_.async_complete(*successor, "second", {}, asio::use_future)),
              IsCompleted());
  EXPECT_EQ(claims, 1);
  EXPECT_EQ(replays, 19);
  EXPECT_THAT(service_.complete(dead, "late"), IsLost());
}

TEST_P(AsyncVerbs, WaitingEndsAtItsDeadline) {
  Lease lease = claimed("k");
  std::optional<result<WaitOutcome>> waited;
  async_.async_wait(request("k"), 10s, {},
                    [&](result<WaitOutcome> outcome) { waited = std::move(outcome); });
  clock_.advance(9999ms);
  EXPECT_EQ(io_.poll(), 0U);
  clock_.advance(1ms);
  io_.restart();
  io_.run();
  EXPECT_THAT(waited.value(), IsInProgress());
}

TEST_P(AsyncVerbs, AWaitOfNoTimeStillReadsOnce) {
  Lease lease = claimed("k");
  ASSERT_THAT(service_.complete(lease, "done"), IsCompleted());
  EXPECT_THAT(now(async_.async_wait(request("k"), 0s, {}, asio::use_future)), ReplayOf("done"));
}

TEST_P(AsyncVerbs, ACancelledWaitEndsAtOnceAndTheOthersGoOn) {
  Lease lease = claimed("k");
  asio::cancellation_signal stop;
  std::optional<result<ClaimOutcome>> first;
  std::optional<result<ClaimOutcome>> second;
  async_.async_claim_or_wait(
      request("k"), 1h, {},
      asio::bind_cancellation_slot(
          stop.slot(), [&](result<ClaimOutcome> outcome) { first = std::move(outcome); }));
  async_.async_claim_or_wait(request("k"), 1h, {},
                             [&](result<ClaimOutcome> outcome) { second = std::move(outcome); });
  stop.emit(asio::cancellation_type::total);
  io_.restart();
  while (!first) io_.poll();
  // Over lanes its claim may have been under way: then its true answer comes.
  if (*first) {
    EXPECT_THAT(*first, IsInProgress());
  } else {
    EXPECT_THAT(*first, HasError(errc::cancelled));
  }
  EXPECT_FALSE(second.has_value());
  EXPECT_THAT(now(async_.async_complete(lease, "done", {}, asio::use_future)), IsCompleted());
  EXPECT_THAT(second.value(), ReplayOf("done"));
  stop.emit(asio::cancellation_type::total);  // of a finished operation: nothing
  EXPECT_EQ(service_.counters()[Counter::errors], 0U);
}

TEST_P(AsyncVerbs, AShutdownAnswersWaiters) {
  Lease lease = claimed("k");
  auto waited = async_.async_wait(request("k"), 1h, {}, asio::use_future);
  service_.shutdown(0s);
  EXPECT_THAT(now(std::move(waited)), HasError(errc::shutting_down));
  EXPECT_THAT(now(async_.async_claim(request("new"), {}, asio::use_future)),
              HasError(errc::shutting_down));
  EXPECT_THAT(now(async_.async_complete(lease, "done", {}, asio::use_future)), IsCompleted());
}

TEST_P(AsyncVerbs, TheEndOfTheAsyncServiceCancelsWhatWaits) {
  Lease lease = claimed("k");
  std::future<result<WaitOutcome>> waited;
  std::future<result<ClaimOutcome>> claiming;
  {
    AsyncService brief(io_.get_executor(), service_, {.lanes = GetParam()});
    waited = brief.async_wait(request("k"), 1h, {}, asio::use_future);
    claiming = brief.async_claim_or_wait(request("k"), 1h, {}, asio::use_future);
  }
  EXPECT_THAT(now(std::move(waited)), HasError(errc::cancelled));
  EXPECT_THAT(claiming.get(), HasError(errc::cancelled));
}

// A store whose first read is long under way: its answer is old when it comes.
class SlowReadStore final : public ForwardingStore {
 public:
  SlowReadStore(StorePtr behind, Clock& clock, Duration takes)
      : ForwardingStore(std::move(behind)), clock_(clock), takes_(takes) {}
  void load(std::span<Load> ops) override {
    ForwardingStore::load(ops);
    if (reads++ == 0) clock_.pause(takes_.micros());
  }
  int reads = 0;

 private:
  Clock& clock_;
  const Duration takes_;
};

// Counted from the answer's arrival, the lease would seem to go on for as long as the read took.
TEST(AsyncWaiting, ALeaseThatEndsWhileAReadIsUnderWayIsTakenOverAtOnce) {
  VirtualClock clock;
  const auto slow = std::make_shared<SlowReadStore>(open("memory:", {.clock = &clock}).value(),
                                                    clock, Policy{}.lease);
  IdempotencyService service(slow, options_on(clock));
  asio::io_context io;
  AsyncService async(io.get_executor(), service, {.lanes = 0});
  auto dead = service.claim(request("k"));
  ASSERT_THAT(dead, IsClaimed());
  std::optional<result<ClaimOutcome>> answer;
  async.async_claim_or_wait(request("k"), 1h, {},
                            [&](result<ClaimOutcome> outcome) { answer = std::move(outcome); });
  io.poll();
  ASSERT_TRUE(answer.has_value());
  EXPECT_THAT(*answer, IsClaimed());
  EXPECT_EQ(slow->reads, 2);
}

// What gathers while a lane is at work goes to the store as one batch.
TEST(AsyncLanes, CallsThatGatherBecomeOneBatch) {
  VirtualClock clock;
  auto recording = std::make_shared<RecordingStore>(open("memory:", {.clock = &clock}).value());
  auto slow = std::make_shared<FaultStore>(recording, clock);
  IdempotencyService service(slow, options_on(clock));
  asio::io_context io;
  AsyncService async(io.get_executor(), service, {.lanes = 1});
  std::latch in_store(1);
  std::latch go_on(1);
  slow->before_call(Verb::insert, 1, [&] {
    in_store.count_down();
    go_on.wait();
  });
  int claimed = 0;
  const auto count = [&](const result<ClaimOutcome>& outcome) {
    EXPECT_THAT(outcome, IsClaimed());
    ++claimed;
  };
  async.async_claim(request("first"), {}, count);
  in_store.wait();
  for (int i = 0; i < 100; ++i) async.async_claim(request("k" + std::to_string(i)), {}, count);
  go_on.count_down();
  io.run();
  EXPECT_EQ(claimed, 101);
  EXPECT_EQ(recording->calls(Verb::insert), 2U);
}

// Cancelled before a lane took it: nothing reaches the store.
TEST(AsyncLanes, AQueuedClaimThatIsCancelledIsNeverSent) {
  VirtualClock clock;
  auto recording = std::make_shared<RecordingStore>(open("memory:", {.clock = &clock}).value());
  auto slow = std::make_shared<FaultStore>(recording, clock);
  IdempotencyService service(slow, options_on(clock));
  asio::io_context io;
  AsyncService async(io.get_executor(), service, {.lanes = 1});
  std::latch in_store(1);
  std::latch go_on(1);
  slow->before_call(Verb::insert, 1, [&] {
    in_store.count_down();
    go_on.wait();
  });
  async.async_claim(request("first"), {}, [](const result<ClaimOutcome>&) {});
  in_store.wait();
  asio::cancellation_signal stop;
  std::optional<result<ClaimOutcome>> answer;
  async.async_claim(request("taken back"), {},
                    asio::bind_cancellation_slot(stop.slot(), [&](result<ClaimOutcome> outcome) {
                      answer = std::move(outcome);
                    }));
  stop.emit(asio::cancellation_type::terminal);
  io.run_one();  // answered although the lane is still at work
  EXPECT_THAT(answer.value(), HasError(errc::cancelled));
  go_on.count_down();
  io.run();
  EXPECT_FALSE(service.get(Key("taken back")).value().has_value());
}

}  // namespace
}  // namespace idem
