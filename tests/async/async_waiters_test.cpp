// Ten thousand calls that wait for one key: few threads, few reads, all answered.
//
// The bounds on threads and reads are asserted; times are printed (a busy machine must not fail a
// test of logic).
#include <gtest/gtest.h>

#include <boost/asio/io_context.hpp>
#include <chrono>
#include <fstream>
#include <iostream>

#include "idem/async.hpp"
#include "idem/open.hpp"
#include "idem/testing/matchers.hpp"
#include "idem/testing/recording_store.hpp"

namespace idem {
namespace {

namespace asio = boost::asio;
using namespace std::chrono_literals;
using namespace testing;  // NOLINT: the matchers

constexpr int kWaiters = 10'000;

Request request() { return {"hot", Fingerprint::of_bytes("hot")}; }

int threads_of_this_process() {
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);) {
    if (line.rfind("Threads:", 0) == 0) return std::stoi(line.substr(8));
  }
  return 0;
}

class AsyncWaiters : public ::testing::TestWithParam<std::string> {
 protected:
  // Runs the handlers for a while, in this thread.
  void run_for(Micros time) {
    io_.restart();
    (void)io_.run_for(time);
  }

  template <class Start>
  void everyone_waits(Start start) {
    Lease lease = std::move(std::get<Claimed>(service_.claim(request()).value()).lease);
    recording_->clear();
    const Time began = service_.clock().now();
    for (int i = 0; i < kWaiters; ++i) start();
    run_for(2s);
    const auto seconds = std::chrono::duration<double>(service_.clock().now() - began).count();
    const auto reads = recording_->calls(Verb::load);
    const int threads = threads_of_this_process() - threads_before_ + 1;  // this one runs handlers
    EXPECT_EQ(replays_, 0);
    EXPECT_LE(threads, 4);
    EXPECT_LE(static_cast<double>(reads), 40 * seconds / 2);

    // From another process, as it were: this service's hub is not told.
    IdempotencyService other(fixture_.store);
    Lease same = Lease::adopt(request(), lease.token());
    ASSERT_THAT(other.complete(same, "done"), IsCompleted());
    const Time completed = service_.clock().now();
    io_.restart();
    while (replays_ < kWaiters && io_.run_one_for(60s) > 0) {
    }
    EXPECT_EQ(replays_, kWaiters);
    const auto took = service_.clock().now() - completed;
    std::cout << GetParam() << ": " << kWaiters << " waiters, " << threads << " threads, " << reads
              << " reads in " << seconds << " s, all answered " << took.count() / 1000
              << " ms after the completion\n";
    // For the lease's destructor: it was reported through the other handle.
    (void)service_.complete(lease, "done");
  }

  template <class Outcome>
  auto counting() {
    return [this](const result<Outcome>& outcome) {
      EXPECT_THAT(outcome, ReplayOf("done"));
      ++replays_;
    };
  }

  Fixture fixture_ = make_fixture(GetParam()).value();
  std::shared_ptr<RecordingStore> recording_ = std::make_shared<RecordingStore>(fixture_.store);
  const int threads_before_ = threads_of_this_process();  // the store's, a private server's keeper
  asio::io_context io_;
  IdempotencyService service_{recording_};
  AsyncService async_{io_.get_executor(), service_, {.lanes = lanes()}};
  int replays_ = 0;

 private:
  static std::optional<std::size_t> lanes() {
    if (GetParam() == "memory") return std::nullopt;
    return 1;
  }
};

std::vector<std::string> stores() {
  std::vector<std::string> names{"memory", "redis"};
  for (const Backend& backend : backends()) {
    if (backend.name == "mysql") names.emplace_back(backend.name);
  }
  return names;
}

INSTANTIATE_TEST_SUITE_P(Stores, AsyncWaiters, ::testing::ValuesIn(stores()),
                         [](const auto& store) { return store.param; });

TEST_P(AsyncWaiters, TenThousandWaitsOnOneKeyShareTheirReads) {
  everyone_waits([this] { async_.async_wait(request(), 1h, {}, counting<WaitOutcome>()); });
}

TEST_P(AsyncWaiters, TenThousandClaimsThatWaitShareTheirReads) {
  everyone_waits(
      [this] { async_.async_claim_or_wait(request(), 1h, {}, counting<ClaimOutcome>()); });
}

}  // namespace
}  // namespace idem
