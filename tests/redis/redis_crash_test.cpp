// What was acknowledged is still there: servers with appendfsync always, killed under load.
//
// IDEM_NIGHTLY=1: 30 kills instead of 3.
#include <gtest/gtest.h>

#include <atomic>
#include <mutex>
#include <thread>

#include "idem/clock.hpp"
#include "redis_servers.hpp"

namespace idem::testing {
namespace {

using std::chrono::seconds;

template <class T, class Result>
bool is(const Result& outcome) {
  return outcome.has_value() && std::holds_alternative<T>(*outcome);
}

TEST(RedisCrash, AKilledServerLosesNoAcknowledgedResultAndIsUsedAgainAtOnce) {
  const int kills = std::getenv("IDEM_NIGHTLY") != nullptr ? 30 : 3;
  RedisServer server({"--appendonly", "yes", "--appendfsync", "always"});
  const auto store = open_redis(server.url("timeout=300ms&min_durability=power")).value();
  ServiceOptions options;
  options.timeout = seconds(20);
  IdempotencyService service(store, options);
  std::atomic<bool> over{false};
  std::atomic<int> done{0}, strange{0};
  std::mutex mutex;
  std::vector<std::string> acknowledged;

  std::vector<std::thread> threads;
  for (int t = 0; t < 8; ++t) {
    threads.emplace_back([&, t] {
      for (int i = 0; !over; ++i) {
        const std::string key = std::to_string(t) + "-" + std::to_string(i);
        CallOptions call;
        call.owner = Owner::random();
        auto claim = service.claim(request(key), call);
        while (!claim && !over) claim = service.claim(request(key), call);
        if (!claim) break;
        if (!is<Claimed>(claim)) {
          ++strange;
          continue;
        }
        Lease& lease = std::get<Claimed>(*claim).lease;
        auto end = service.complete(lease, "result of " + key);
        while (!end && !over) end = service.complete(lease, "result of " + key);
        if (!end) break;
        if (!is<Completed>(end)) {
          ++strange;
          continue;
        }
        ++done;
        const std::lock_guard guard(mutex);
        acknowledged.push_back(key);
      }
    });
  }
  Micros slowest{0};
  for (int i = 0; i < kills; ++i) {
    const int then = done;
    while (done < then + 40) std::this_thread::yield();
    server.process().kill();
    ASSERT_TRUE(server.process().start().has_value());
    const Time ready = system_clock().now();
    const int before = done;
    while (done == before) std::this_thread::yield();
    slowest = std::max(slowest, system_clock().now() - ready);
  }
  over = true;
  for (std::thread& thread : threads) thread.join();
  int lost = 0;
  for (const std::string& key : acknowledged) {
    const auto replay = service.claim(request(key));
    if (!is<Replay>(replay) || std::get<Replay>(*replay).result != "result of " + key) ++lost;
  }
  EXPECT_EQ(lost, 0) << "of " << acknowledged.size();
  EXPECT_EQ(strange, 0);
  EXPECT_LT(slowest, seconds(2));
  std::printf("%d kills, %zu acknowledged results, %d lost, first success after %lld ms at most\n",
              kills, acknowledged.size(), lost, static_cast<long long>(slowest.count() / 1000));
}

}  // namespace
}  // namespace idem::testing
