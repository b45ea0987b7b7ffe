// H10, H32, H36, H37, H40, H41: the server's clock decides, a claim is one step, only its owner
// ends it, scripts and replies go astray without harm.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <barrier>
#include <fstream>
#include <future>
#include <random>
#include <thread>

#include "idem/clock.hpp"
#include "redis_servers.hpp"

namespace idem::testing {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

template <class T, class Result>
bool is(const Result& outcome) {
  return outcome.has_value() && std::holds_alternative<T>(*outcome);
}

Lease claimed(IdempotencyService& service, const std::string& key,
              const CallOptions& options = {}) {
  auto outcome = service.claim(request(key), options);
  if (!is<Claimed>(outcome)) throw std::runtime_error("not claimed: " + key);
  return std::move(std::get<Claimed>(*outcome).lease);
}

CallOptions lease_of(Duration lease) {
  CallOptions options;
  options.policy.lease = lease;
  options.policy.stuck_after = seconds(600);
  return options;
}

// A machine whose clock is wrong, and does not know it.
class SkewedClock final : public Clock {
 public:
  explicit SkewedClock(Micros skew) : skew_(skew) {}
  [[nodiscard]] Time now() const noexcept override { return system_clock().now() + skew_; }
  [[nodiscard]] std::unique_ptr<Timers> timers() override { return system_clock().timers(); }
  void pause(Micros d) override { system_clock().pause(d); }
  [[nodiscard]] Micros offset() const noexcept override { return Micros(0); }

 private:
  Micros skew_;
};

TEST(RedisClaim, H10AClientWhoseClockIsWrongSeesTheServersLease) {
  RedisServer server;
  IdempotencyService a(open_redis(server.url()).value());
  (void)claimed(a, "k", lease_of(seconds(60)));
  for (const Micros skew : {Micros(seconds(90)), Micros(seconds(-90))}) {
    SkewedClock clock(skew);
    ServiceOptions options;
    options.clock = &clock;
    IdempotencyService b(open_redis(server.url(), &clock).value(), options);
    const auto outcome = b.claim(request("k"));
    ASSERT_TRUE(is<InProgress>(outcome));
    EXPECT_LE(std::get<InProgress>(*outcome).retry_after, seconds(60));
    EXPECT_GT(std::get<InProgress>(*outcome).retry_after, seconds(50));
  }
}

TEST(RedisClaim, H32ResultsOfAnySizeUpToTheLimitComeBackByteForByte) {
  RedisServer server;
  const auto store = open_redis(server.url("timeout=20s")).value();
  ServiceOptions options;
  options.policy.max_result_bytes = std::uint64_t{16} << 20;
  options.timeout = seconds(20);
  IdempotencyService service(store, options);
  for (const std::size_t size :
       {std::size_t{0}, std::size_t{1}, std::size_t{65'535}, std::size_t{65'536},
        std::size_t{117'465}, std::size_t{1} << 20, std::size_t{16} << 20}) {
    std::string result(size, '\0');
    for (std::size_t i = 0; i < size; ++i) result[i] = static_cast<char>(i * 31 >> 3);
    const std::string key = "size-" + std::to_string(size);
    Lease lease = claimed(service, key);
    ASSERT_TRUE(is<Completed>(service.complete(lease, result))) << size;
    const auto replay = service.claim(request(key));
    ASSERT_TRUE(is<Replay>(replay)) << size;
    EXPECT_TRUE(std::get<Replay>(*replay).result == result) << size;
  }
  Lease lease = claimed(service, "too large");
  const auto refused = service.complete(lease, std::string((std::size_t{16} << 20) + 1, 'x'));
  ASSERT_FALSE(refused.has_value());
  EXPECT_EQ(refused.error().code, errc::too_large);
  EXPECT_TRUE(is<Completed>(service.complete(lease, "smaller")));
}

std::vector<std::string> keys_without_expiry(RawRedis& raw) {
  std::vector<std::string> bad;
  for (const redis::Reply& key : raw({"KEYS", "*"}).elements) {
    if (raw({"PTTL", key.text}).integer == -1) bad.push_back(key.text);
  }
  return bad;
}

// A claim in two commands that dies between them leaves a key that never goes.
TEST(RedisClaim, H36ClaimIsOneCommandThatCarriesNxAndTheExpiry) {
  RedisServer server;
  const auto store = open_redis(server.url()).value();
  IdempotencyService service(store);
  (void)claimed(service, "the server's time is heard");
  RawRedis monitor(server.port());
  monitor({"MONITOR"});
  for (int i = 0; i < 100; ++i) (void)claimed(service, "k" + std::to_string(i));
  RawRedis raw(server.port());
  raw({"ECHO", "the end"});
  int sets = 0, times = 0;
  for (;;) {
    const std::string line = monitor.receive().text;
    if (line.find("the end") != std::string::npos) break;
    if (line.find("\"TIME\"") != std::string::npos) {
      ++times;
      continue;
    }
    ++sets;
    EXPECT_NE(line.find("\"SET\""), std::string::npos) << line.substr(0, 80);
    EXPECT_NE(line.find("\"NX\" \"GET\" \"PX\""), std::string::npos);
  }
  EXPECT_EQ(sets, 100);
  EXPECT_EQ(times, 100);
}

// A SET that the server ran late is dated anew before anyone hears of it: its lease is whole.
TEST(RedisClaim, AClaimThatTheServerRanLateHasAWholeLease) {
  RedisServer server;
  const auto store = open_redis(server.url("timeout=20s")).value();
  IdempotencyService service(store);
  (void)claimed(service, "the server's time is heard");
  server.process().freeze();
  auto late = std::async(std::launch::async, [&] {
    Draft draft;
    draft.owner = Owner::random();
    draft.lease = seconds(20);
    draft.keep = seconds(60);
    const Key key("late");
    Insert op{key, draft, {}};
    store->insert({&op, 1});
    return std::pair(op.answer, draft);
  });
  system_clock().pause(milliseconds(2100));  // beyond what a lease of 20 s may be too early by
  server.process().thaw();
  const auto [answer, draft] = late.get();
  ASSERT_EQ(answer.state, Answer::State::written) << answer.error.message;
  EXPECT_EQ(answer.held.owner, draft.owner);
  EXPECT_EQ(answer.held.create_time, answer.now);
  EXPECT_EQ(answer.held.lease_until, answer.now + draft.lease);
  EXPECT_EQ(answer.held.fence, answer.held.version);
  const Key key("late");
  Load load{key, {}};
  store->load({&load, 1});
  EXPECT_EQ(load.answer.held, answer.held);
}

// Duplicates that come while the server is busy are asked once; only one of them is the first.
TEST(RedisClaim, ClaimsOfOneKeyThatGatherAreOneQuestionAndOneOwner) {
  constexpr int kCallers = 12;
  RedisServer server;
  const auto store = open_redis(server.url("timeout=20s")).value();
  IdempotencyService service(store);
  (void)claimed(service, "the server's time is heard");
  RawRedis raw(server.port());
  EXPECT_EQ(raw({"CONFIG", "RESETSTAT"}).text, "OK");
  server.process().freeze();
  const auto claim = [&](const std::string& name) {
    Draft draft;
    draft.owner = Owner::random();
    draft.lease = draft.keep = seconds(60);
    const Key key(name);
    Insert op{key, draft, {}};
    store->insert({&op, 1});
    return std::pair(op.answer, draft.owner);
  };
  std::vector<std::future<std::pair<Answer, Owner>>> callers;
  callers.push_back(std::async(std::launch::async, claim, "under way"));
  for (int i = 0; i < kCallers; ++i) {
    callers.push_back(std::async(std::launch::async, claim, "hot"));
  }
  system_clock().pause(milliseconds(100));  // they gather; fewer do on a slow machine
  server.process().thaw();
  EXPECT_EQ(callers[0].get().first.state, Answer::State::written);
  std::vector<std::pair<Answer, Owner>> hot;
  for (int i = 1; i <= kCallers; ++i) hot.push_back(callers[static_cast<std::size_t>(i)].get());
  const auto winner = std::find_if(hot.begin(), hot.end(), [](const auto& one) {
    return one.first.state == Answer::State::written;
  });
  ASSERT_NE(winner, hot.end());
  EXPECT_EQ(winner->first.held.owner, winner->second);
  for (const auto& [answer, owner] : hot) {
    EXPECT_EQ(answer.held.owner, winner->second);
    EXPECT_EQ(answer.state == Answer::State::written, owner == winner->second);
  }
  const std::string stats = raw({"INFO", "commandstats"}).text;
  const std::size_t at = stats.find("cmdstat_set:calls=");
  ASSERT_NE(at, std::string::npos);
  EXPECT_LT(std::atoi(stats.c_str() + at + 18), kCallers) << stats.substr(at, 40);
}

TEST(RedisClaim, H36EveryKeyHasAnExpiryAfterEveryVerb) {
  RedisServer server;
  VirtualClock clock;
  const auto store = open_redis(server.url(), &clock).value();
  ServiceOptions options;
  options.clock = &clock;
  IdempotencyService service(store, options);
  RawRedis raw(server.port());
  Lease completes = claimed(service, "completes");
  Lease fails = claimed(service, "fails");
  Lease renews = claimed(service, "renews");
  Lease releases = claimed(service, "releases");
  Lease lapses = claimed(service, "lapses", lease_of(milliseconds(200)));
  EXPECT_TRUE(is<Completed>(service.complete(completes, "r")));
  EXPECT_TRUE(is<FailRecorded>(service.fail(fails, FailKind::retryable, "why")));
  EXPECT_TRUE(is<Renewed>(service.renew(renews)));
  EXPECT_TRUE(is<Released>(service.release(releases)));
  clock.advance(milliseconds(200));
  EXPECT_EQ(claimed(service, "lapses").kind(), ClaimKind::takeover);
  EXPECT_EQ(raw({"DBSIZE"}).integer, 5);  // the released one left its floor
  EXPECT_THAT(keys_without_expiry(raw), ::testing::IsEmpty());
}

TEST(RedisClaim, H36KilledClientsLeaveNoKeyWithoutExpiry) {
  RedisServer server;
  RawRedis raw(server.port());
  std::mt19937 random(7);
  for (int round = 0; round < 8; ++round) {
    ServerCommand command;
    command.argv = {IDEM_REDIS_CLAIMER, server.url(), "r" + std::to_string(round) + "-", "claim"};
    command.directory = server.directory();
    command.log = server.directory() + "/claimer" + std::to_string(round);
    const auto enough = std::uniform_int_distribution<std::int64_t>(1, 1500)(random);
    const std::int64_t before = raw({"DBSIZE"}).integer;
    command.ready = [&] { return raw({"DBSIZE"}).integer >= before + enough; };
    auto client = ServerProcess::launch(command);
    ASSERT_TRUE(client.has_value()) << client.error().message;
    (*client)->kill();
  }
  EXPECT_GT(raw({"DBSIZE"}).integer, 100);
  EXPECT_THAT(keys_without_expiry(raw), ::testing::IsEmpty());
}

TEST(RedisClaim, H37AStalledOwnerCannotTouchItsSuccessor) {
  RedisServer server;
  VirtualClock clock;
  const auto store = open_redis(server.url(), &clock).value();
  ServiceOptions options;
  options.clock = &clock;
  IdempotencyService service(store, options);
  Lease a = claimed(service, "k", lease_of(milliseconds(200)));
  clock.advance(milliseconds(300));
  Lease b = claimed(service, "k", lease_of(seconds(10)));
  const Record before = service.get(Key("k")).value()->record;
  EXPECT_TRUE(is<Lost>(service.release(a)));
  EXPECT_TRUE(is<Lost>(service.renew(a)));
  EXPECT_TRUE(is<Lost>(service.complete(a, "late")));
  EXPECT_EQ(service.get(Key("k")).value()->record, before);
  EXPECT_TRUE(is<InProgress>(service.claim(request("k"))));
  EXPECT_TRUE(is<Completed>(service.complete(b, "b's")));
}

TEST(RedisClaim, H37NoRaceOfEndAndTakeoverHasTwoOwners) {
  constexpr int kRounds = 500;
  RedisServer server;
  VirtualClock clock;
  const auto store = open_redis(server.url(), &clock).value();
  ServiceOptions options;
  options.clock = &clock;
  IdempotencyService service(store, options);
  int two_owners = 0, taken_over = 0;
  std::barrier together(2);
  std::optional<Lease> a;
  std::atomic<bool> completed{false};
  std::thread slow([&] {
    for (int i = 0; i < kRounds; ++i) {
      together.arrive_and_wait();
      // A takeover is two round trips, an end is one: each is to come first sometimes.
      if (i % 2 == 1) (void)service.get(Key("k" + std::to_string(i)));
      completed = is<Completed>(service.complete(*a, "a's"));
      together.arrive_and_wait();
    }
  });
  for (int i = 0; i < kRounds; ++i) {
    const std::string key = "k" + std::to_string(i);
    a.emplace(claimed(service, key, lease_of(milliseconds(200))));
    clock.advance(milliseconds(200));
    together.arrive_and_wait();
    const auto b = service.claim(request(key));
    together.arrive_and_wait();
    if (is<Claimed>(b)) ++taken_over;
    if (is<Claimed>(b) == completed.load()) ++two_owners;  // both, or neither
  }
  slow.join();
  EXPECT_EQ(two_owners, 0);
  EXPECT_GT(taken_over, 0);
}

std::int64_t script_calls(RawRedis& raw) {
  const std::string stats = raw({"INFO", "commandstats"}).text;
  std::int64_t calls = 0;
  for (const std::string name : {"cmdstat_eval:calls=", "cmdstat_evalsha:calls="}) {
    const std::size_t at = stats.find(name);
    if (at != std::string::npos) calls += std::atoll(stats.c_str() + at + name.size());
  }
  return calls;
}

TEST(RedisClaim, H40ForgottenScriptsCostOneTripAndNothingElse) {
  RedisServer server({"--appendonly", "yes"});
  const auto store = open_redis(server.url()).value();
  IdempotencyService service(store);
  auto raw = std::make_unique<RawRedis>(server.port());
  (void)claimed(service, "warm");
  const auto trips = [&](auto call) {
    const std::int64_t before = script_calls(*raw);
    call();
    return script_calls(*raw) - before;
  };
  Lease lease = claimed(service, "k");
  const auto renew = [&] { EXPECT_TRUE(is<Renewed>(service.renew(lease))); };
  EXPECT_LE(trips(renew), 2);
  EXPECT_EQ(trips(renew), 1);
  (*raw)({"SCRIPT", "FLUSH"});
  EXPECT_EQ(trips(renew), 2);
  EXPECT_EQ(trips(renew), 1);

  for (int i = 0; i < 3; ++i) {
    const std::string key = "restart" + std::to_string(i);
    const auto restart = [&] {
      raw.reset();
      server.process().stop();
      ASSERT_TRUE(server.process().start().has_value());
      raw = std::make_unique<RawRedis>(server.port());
    };
    Lease restarted = claimed(service, key);
    restart();
    EXPECT_TRUE(is<Renewed>(service.renew(restarted)));
    restart();
    EXPECT_TRUE(is<Completed>(service.complete(restarted, "r")));
    restart();
    EXPECT_TRUE(is<Replay>(service.claim(request(key))));
  }
}

TEST(RedisClaim, H40EightThreadsNeverSeeAScriptFlush) {
  constexpr int kPerThread = 300;
  RedisServer server;
  const auto store = open_redis(server.url("timeout=10s")).value();
  IdempotencyService service(store);
  std::atomic<int> ended{0}, errors{0}, doubled{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < 8; ++t) {
    threads.emplace_back([&, t] {
      for (int i = 0; i < kPerThread; ++i) {
        const std::string key = std::to_string(t) + "-" + std::to_string(i);
        auto outcome = service.claim(request(key));
        if (!is<Claimed>(outcome)) {
          ++errors;
          continue;
        }
        Lease& lease = std::get<Claimed>(*outcome).lease;
        if (lease.attempt() != 1) ++doubled;
        if (!is<Renewed>(service.renew(lease))) ++errors;
        const auto done = service.complete(lease, key);
        if (!is<Completed>(done)) {
          ++errors;
        } else if (std::get<Completed>(*done).already) {
          ++doubled;
        }
      }
      ++ended;
    });
  }
  RawRedis raw(server.port());
  while (ended < 8) raw({"SCRIPT", "FLUSH"});
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(errors, 0);
  EXPECT_EQ(doubled, 0);
}

// A reply that comes after its caller has gone must not become the next caller's answer.
TEST(RedisClaim, H41ALateReplyAnswersNobodyElse) {
  RedisServer server;
  const auto patient = open_redis(server.url("timeout=5s")).value();
  const auto hasty = open_redis(server.url("timeout=50ms")).value();
  IdempotencyService service(patient);
  for (const std::string key : {"A", "B"}) {
    Lease lease = claimed(service, key);
    ASSERT_TRUE(is<Completed>(service.complete(lease, "result of " + key)));
  }
  const auto look = [&](RedisStore& store, const Key& key) {
    Load op{key, {}};
    store.load({&op, 1});
    return op.answer;
  };
  RawRedis raw(server.port());
  raw({"CLIENT", "PAUSE", "200"});
  const Answer a = look(*hasty, "A");
  ASSERT_EQ(a.state, Answer::State::failed);
  EXPECT_TRUE(a.error.code == errc::unknown || a.error.code == errc::unavailable);
  for (;;) {
    const Answer b = look(*hasty, "B");
    if (b.state == Answer::State::failed) continue;  // still paused
    ASSERT_EQ(b.state, Answer::State::stands);
    EXPECT_EQ(b.held.result, "result of B");
    break;
  }
}

TEST(RedisClaim, H41TenThousandHastyReadsNeverGetAnotherKeysRecord) {
  constexpr int kKeys = 50, kReads = 10'000, kThreads = 8;
  RedisServer server;
  const auto store = open_redis(server.url("timeout=20ms&connect_timeout=5s")).value();
  {
    const auto patient = open_redis(server.url("timeout=5s")).value();
    IdempotencyService service(patient);
    for (int i = 0; i < kKeys; ++i) {
      Lease lease = claimed(service, "k" + std::to_string(i));
      ASSERT_TRUE(is<Completed>(service.complete(lease, "k" + std::to_string(i))));
    }
  }
  std::atomic<int> wrong{0}, right{0}, gone{0}, ended{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&, t] {
      std::mt19937 random(static_cast<unsigned>(t));
      for (int i = 0; i < kReads / kThreads; ++i) {
        const Key key("k" + std::to_string(random() % kKeys));
        Load op{key, {}};
        store->load({&op, 1});
        if (op.answer.state == Answer::State::failed) {
          ++gone;
        } else {
          ++(op.answer.held.result == key.key ? right : wrong);
        }
      }
      ++ended;
    });
  }
  RawRedis raw(server.port());
  std::mt19937 random(99);
  while (ended < kThreads) {
    raw({"CLIENT", "PAUSE", std::to_string(5 + random() % 40)});
    for (int i = 0; i < 300; ++i) raw({"PING"});  // the first is answered after the pause
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(wrong, 0);
  EXPECT_GT(right, 0);
  EXPECT_GT(gone, 0);
}

}  // namespace
}  // namespace idem::testing
