// Redis in front of MySQL: whatever happens to the front, the business runs once.
#include <gmock/gmock.h>

#include <atomic>
#include <map>
#include <mutex>
#include <thread>
#include <vector>

#include "idem/testing/matchers.hpp"
#include "idem/tiered_store.hpp"
#include "redis_servers.hpp"
#include "support.hpp"

namespace idem::mysql_test {
namespace {

using namespace idem::testing;  // NOLINT: matchers, servers

class MysqlTiered : public EachLayout {
 protected:
  [[nodiscard]] StorePtr behind(const std::string& front_url) {
    auto front = open_redis(front_url);
    if (!front) throw std::runtime_error(front.error().message);
    auto store = make_tiered_store({*front, open(options()), nullptr});
    if (!store) throw std::runtime_error(store.error().message);
    return *store;
  }
};
IDEM_EACH_LAYOUT(MysqlTiered);

std::string name(std::string_view what, int i) { return std::string(what) + std::to_string(i); }

// Claims, and completes what it got; counts.
struct Business {
  explicit Business(StorePtr store) : service(std::move(store)) {}

  void call(const std::string& key) {
    const Time begin = system_clock().now();
    auto outcome = service.claim(request(key));
    longest = std::max<Micros>(longest, system_clock().now() - begin);
    if (!outcome) {
      ++errors;
      return;
    }
    if (auto* claimed = std::get_if<Claimed>(&*outcome)) {
      ++ran;
      if (!service.complete(claimed->lease, key)) ++errors;
    } else if (auto* replay = std::get_if<Replay>(&*outcome)) {
      if (replay->result != key) ++errors;
    }
  }

  IdempotencyService service;
  int ran = 0;
  int errors = 0;
  Micros longest{};
};

// A front that evicts, or may not be asked whether it does, loses claims: the back does not.
TEST_P(MysqlTiered, H38BusinessRunsFiftyTimesUnderEveryEvictionPolicy) {
  for (const std::string policy :
       {"noeviction", "allkeys-lru", "volatile-lru", "volatile-ttl", "unknown"}) {
    std::vector<std::string> arguments{"--maxmemory", "4mb", "--maxmemory-policy",
                                       policy == "unknown" ? "allkeys-lru" : policy};
    if (policy == "unknown") arguments.insert(arguments.end(), {"--rename-command", "CONFIG", ""});
    RedisServer redis(arguments);
    IdempotencyService service(behind(redis.url("eviction=warn")));
    CallOptions ten_minutes;
    ten_minutes.policy.lease = 600s;
    int ran = 0;
    const auto claim_all = [&] {
      for (int i = 0; i < 50; ++i) {
        const auto outcome = service.claim(request(name(policy, i)), ten_minutes);
        ASSERT_TRUE(outcome) << outcome.error().message;
        if (std::holds_alternative<Claimed>(*outcome)) ++ran;
      }
    };
    claim_all();
    RawRedis raw(redis.port());
    for (int i = 0; i < 6000; ++i) raw({"SET", name("foreign", i), std::string(900, 'x')});
    claim_all();
    EXPECT_EQ(ran, 50) << policy;
  }
}

// A front that forgot a claim in a failover: the unique key decides.
TEST_P(MysqlTiered, H39AClaimLostInAFailoverIsStillInProgress) {
  RedisServer primary({"--repl-diskless-sync-delay", "0"});
  RedisServer replica({"--replicaof", "127.0.0.1 " + std::to_string(primary.port())});
  {
    RawRedis raw(primary.port());
    ASSERT_TRUE(comes_true([&] {
      return raw({"INFO", "replication"}).text.find("state=online") != std::string::npos;
    }));
  }
  IdempotencyService before(behind(primary.url()));
  // Replication stops here: what is claimed now does not get to the replica that takes over.
  RawRedis raw(replica.port());
  raw({"REPLICAOF", "NO", "ONE"});
  ASSERT_THAT(before.claim(request("k1")), IsClaimed());
  primary.process().kill();
  EXPECT_EQ(raw({"DBSIZE"}).integer, 0);
  IdempotencyService after(behind(replica.url()));
  EXPECT_THAT(after.claim(request("k1")), IsInProgress());
}

// (a) stopped, (b) mute, (c) stopped in mid-run: right answers, and the dead front is not asked
// each time.
TEST_P(MysqlTiered, H43ADownOrMuteFrontCostsLittleAndNothingRunsTwice) {
  for (const std::string how : {"stopped", "mute", "mid-run"}) {
    RedisServer redis;
    Business business(behind(redis.url("timeout=100ms")));
    business.call(how + "first");
    if (how == "stopped") redis.process().stop();
    if (how == "mute") redis.process().freeze();
    const Time begin = system_clock().now();
    for (int i = 0; i < 100; ++i) {
      if (how == "mid-run" && i == 30) redis.process().stop();
      business.call(name(how, i % 50));
    }
    EXPECT_LT(system_clock().now() - begin, Micros(5s)) << how;
    EXPECT_EQ(business.ran, 51) << how;
    EXPECT_EQ(business.errors, 0) << how;
    redis.process().thaw();
    ASSERT_TRUE(redis.process().start());
    const Time back = system_clock().now();
    RawRedis raw(redis.port());
    raw({"FLUSHALL"});
    int i = 0;
    EXPECT_TRUE(comes_true([&] {
      business.call(name(how + "again", i++));
      return raw({"DBSIZE"}).integer > 0;
    }));
    EXPECT_LT(system_clock().now() - back, Micros(2s)) << how;
    EXPECT_EQ(business.ran, 51 + i);
    std::printf("%s: longest call %lld ms\n", how.c_str(),
                static_cast<long long>(business.longest / 1ms));
  }
}

// Many callers, every key asked for by each of them, while the front is killed and comes back.
class Storm {
 public:
  Storm(StorePtr store, int callers) : service_(std::move(store)) {
    for (int c = 0; c < callers; ++c) {
      threads_.emplace_back([this] {
        for (int i = 0; !over_; ++i) call(i);
      });
    }
  }
  ~Storm() { end(); }
  void end() {
    over_ = true;
    for (std::thread& thread : threads_) thread.join();
    threads_.clear();
  }

  std::atomic<int> calls{0}, errors{0}, wrong{0};
  std::atomic<std::int64_t> longest_us{0};

  // Keys that ran, and how many ran twice.
  [[nodiscard]] std::pair<int, int> ran() {
    const std::lock_guard lock(mutex_);
    int twice = 0;
    for (const auto& [key, times] : runs_) twice += times > 1;
    return {static_cast<int>(runs_.size()), twice};
  }

 private:
  void call(int i) {
    const std::string key = name("storm", i);
    const Time begin = system_clock().now();
    auto outcome = service_.claim(request(key));
    const std::int64_t took = (system_clock().now() - begin).count();
    std::int64_t longest = longest_us;
    while (longest < took && !longest_us.compare_exchange_weak(longest, took)) {
    }
    ++calls;
    if (!outcome) {
      ++errors;
    } else if (auto* claimed = std::get_if<Claimed>(&*outcome)) {
      {
        const std::lock_guard lock(mutex_);
        ++runs_[key];
      }
      if (!service_.complete(claimed->lease, key)) ++errors;
    } else if (auto* replay = std::get_if<Replay>(&*outcome)) {
      if (replay->result != key) ++wrong;
    } else if (!std::holds_alternative<InProgress>(*outcome)) {
      ++wrong;
    }
  }

  IdempotencyService service_;
  std::atomic<bool> over_{false};
  std::mutex mutex_;
  std::map<std::string, int> runs_;
  std::vector<std::thread> threads_;
};

TEST_P(MysqlTiered, H43AFrontKilledUnderLoadIsNoErrorAndIsUsedAgainSoon) {
  RedisServer redis;
  Storm storm(behind(redis.url("timeout=100ms")), 8);
  Micros slowest{};
  const int kills = nightly() ? 30 : 2;
  for (int i = 0; i < kills; ++i) {
    const int then = storm.calls;
    ASSERT_TRUE(comes_true([&] { return storm.calls > then + 200; }));
    redis.process().kill();
    const int down = storm.calls;
    ASSERT_TRUE(comes_true([&] { return storm.calls > down + 200; }));
    ASSERT_TRUE(redis.process().start());
    const Time back = system_clock().now();
    RawRedis raw(redis.port());
    ASSERT_TRUE(comes_true([&] { return raw({"DBSIZE"}).integer > 0; }));
    slowest = std::max<Micros>(slowest, system_clock().now() - back);
  }
  storm.end();
  const auto [ran, twice] = storm.ran();
  EXPECT_EQ(storm.errors, 0);
  EXPECT_EQ(storm.wrong, 0);
  EXPECT_EQ(twice, 0);
  EXPECT_LT(slowest, Micros(2s));
  std::printf(
      "%d kills, %d calls, %d keys ran, %d twice, %d errors; longest call %lld ms; front in use "
      "again after %lld ms at most\n",
      kills, storm.calls.load(), ran, twice, storm.errors.load(),
      static_cast<long long>(storm.longest_us / 1000), static_cast<long long>(slowest / 1ms));
}

// A front that has lost everything.
TEST_P(MysqlTiered, AFlushedFrontGrantsNothingTwice) {
  RedisServer redis;
  Business business(behind(redis.url()));
  RawRedis raw(redis.port());
  for (int round = 0; round < 3; ++round) {
    for (int i = 0; i < 20; ++i) business.call(name("k", i));
    raw({"FLUSHALL"});
  }
  EXPECT_EQ(business.ran, 20);
  EXPECT_EQ(business.errors, 0);
}

}  // namespace
}  // namespace idem::mysql_test
