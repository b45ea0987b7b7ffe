// H38, H39, H42, H43, H44: servers that evict, fail over, forbid, hang, restart and are demoted.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <thread>

#include "idem/clock.hpp"
#include "redis_servers.hpp"

namespace idem::testing {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

template <class T, class Result>
bool is(const Result& outcome) {
  return outcome.has_value() && std::holds_alternative<T>(*outcome);
}

CallOptions within(Duration timeout) {
  CallOptions options;
  options.timeout = timeout;
  return options;
}

// One claim, and how it went wrong: errc{} if it did not.
errc claim_error(IdempotencyService& service, const std::string& key) {
  const auto outcome = service.claim(request(key), within(milliseconds(1)));
  return outcome ? errc{} : outcome.error().code;
}

TEST(RedisServers, H38AnEvictingServerIsRefusedOrLoudlyWarnedOf) {
  for (const std::string policy : {"allkeys-lru", "volatile-lru", "volatile-ttl"}) {
    RedisServer server({"--maxmemory", "4mb", "--maxmemory-policy", policy});
    const auto refused = open_redis(server.url());
    ASSERT_FALSE(refused.has_value());
    EXPECT_EQ(refused.error().code, errc::cannot_open);
    EXPECT_THAT(refused.error().message, HasSubstr(policy));
    EXPECT_THAT(refused.error().message, HasSubstr("noeviction"));
    const auto warned = open_redis(server.url("eviction=warn"));
    ASSERT_TRUE(warned.has_value());
    EXPECT_THAT((*warned)->warnings(), Contains(HasSubstr(policy)));
  }
}

TEST(RedisServers, H38AFullServerSaysCapacityAndKeepsEveryClaim) {
  RedisServer server({"--maxmemory", "4mb", "--maxmemory-policy", "noeviction"});
  const auto store = open_redis(server.url()).value();
  EXPECT_THAT(store->warnings(), IsEmpty());
  IdempotencyService service(store);
  for (int i = 0; i < 50; ++i) {
    ASSERT_TRUE(is<Claimed>(service.claim(request("k" + std::to_string(i)))));
  }
  RawRedis raw(server.port());
  int refused = 0;
  for (int i = 0; i < 6000; ++i) {
    if (raw({"SET", "foreign" + std::to_string(i), std::string(900, 'x')}).is_error()) ++refused;
  }
  EXPECT_GT(refused, 0);
  errc full{};
  for (int i = 0; i < 5000 && full == errc{}; ++i) {
    const auto outcome = service.claim(request("more" + std::to_string(i)));
    if (!outcome) full = outcome.error().code;
  }
  EXPECT_EQ(full, errc::capacity);
  for (int i = 0; i < 50; ++i) {
    const auto found = service.get(Key("k" + std::to_string(i)));
    ASSERT_TRUE(found.has_value());
    EXPECT_TRUE(found->has_value());
  }
}

TEST(RedisServers, H38WhatCannotBeCheckedIsSaid) {
  RedisServer server({"--rename-command", "CONFIG", ""});
  const auto store = open_redis(server.url());
  ASSERT_TRUE(store.has_value()) << store.error().message;
  EXPECT_THAT((*store)->warnings(), Contains(HasSubstr("could not be checked")));
}

TEST(RedisServers, DurabilityIsReadFromTheServerAndMayBeDemanded) {
  const auto durability = [](const std::vector<std::string>& arguments) {
    RedisServer server(arguments);
    return open_redis(server.url()).value()->capabilities().durability;
  };
  EXPECT_EQ(durability({}), Durability::none);
  EXPECT_EQ(durability({"--appendonly", "yes"}), Durability::process);
  EXPECT_EQ(durability({"--appendonly", "yes", "--appendfsync", "always"}), Durability::power);
  RedisServer server({"--appendonly", "yes"});
  EXPECT_TRUE(open_redis(server.url("min_durability=process")).has_value());
  const auto refused = open_redis(server.url("min_durability=power"));
  ASSERT_FALSE(refused.has_value());
  EXPECT_THAT(refused.error().message, HasSubstr("appendfsync"));
}

// A primary and its replica, in step.
struct Pair {
  RedisServer primary;
  RedisServer replica;
  Pair()
      : primary({"--repl-diskless-sync-delay", "0"}),
        replica({"--replicaof", "127.0.0.1 " + std::to_string(primary.port())}) {
    RawRedis raw(primary.port());
    while (raw({"INFO", "replication"}).text.find("state=online") == std::string::npos) {
      system_clock().pause(milliseconds(5));
    }
  }
};

TEST(RedisServers, H39WaitForReplicasKeepsAnAcknowledgedClaimOverAFailover) {
  Pair pair;
  const auto careful = open_redis(pair.primary.url("wait_replicas=1&timeout=400ms")).value();
  const auto careless = open_redis(pair.primary.url("timeout=400ms")).value();
  IdempotencyService careful_service(careful), careless_service(careless);
  ASSERT_TRUE(is<Claimed>(careful_service.claim(request("confirmed"))));

  pair.replica.process().freeze();
  ASSERT_TRUE(is<Claimed>(careless_service.claim(request("unconfirmed"))));
  const auto short_of_copies = careful_service.claim(request("doubtful"), within(milliseconds(1)));
  ASSERT_FALSE(short_of_copies.has_value());
  EXPECT_EQ(short_of_copies.error().code, errc::unknown);

  pair.primary.process().kill();
  pair.replica.process().thaw();
  RawRedis raw(pair.replica.port());
  raw({"REPLICAOF", "NO", "ONE"});
  const auto promoted = open_redis(pair.replica.url()).value();
  IdempotencyService service(promoted);
  EXPECT_TRUE(is<InProgress>(service.claim(request("confirmed"))));
}

TEST(RedisServers, H39TheDoubtEndsWhenTheReplicaIsBack) {
  Pair pair;
  const auto store = open_redis(pair.primary.url("wait_replicas=1&timeout=200ms")).value();
  IdempotencyService service(store);
  pair.replica.process().freeze();
  RawRedis raw(pair.primary.port());
  const auto waits = [&] {  // one ends every trip that writes
    const std::string stats = raw({"INFO", "commandstats"}).text;
    const std::size_t at = stats.find("cmdstat_wait:calls=");
    if (at == std::string::npos) return 0;
    return std::atoi(stats.c_str() + at + 19);
  };
  const int before = waits();
  std::thread later([&] {
    while (waits() < before + 2) system_clock().pause(milliseconds(5));  // it was repeated
    pair.replica.process().thaw();
  });
  const auto outcome = service.claim(request("k"), within(seconds(20)));
  later.join();
  EXPECT_TRUE(is<Claimed>(outcome)) << (outcome ? "" : outcome.error().message);
  EXPECT_GT(service.counters()[Counter::unknown_retried], 0U);
}

TEST(RedisServers, AReplicaIsRefusedAndADemotedPrimaryIsUnavailable) {
  Pair pair;
  const auto refused = open_redis(pair.replica.url());
  ASSERT_FALSE(refused.has_value());
  EXPECT_EQ(refused.error().code, errc::read_only);

  const auto store = open_redis(pair.primary.url()).value();
  IdempotencyService service(store);
  RawRedis raw(pair.primary.port());
  raw({"REPLICAOF", "127.0.0.1", std::to_string(pair.replica.port())});
  EXPECT_EQ(claim_error(service, "k"), errc::unavailable);
  raw({"REPLICAOF", "NO", "ONE"});
  EXPECT_EQ(claim_error(service, "k"), errc{});
}

class RedisRights : public ::testing::Test {
 protected:
  Error refusal(const std::string& user_info) {
    const std::string url =
        "redis://" + user_info + "@127.0.0.1:" + std::to_string(server_.port()) + "/0";
    const auto store = open_redis(url);
    EXPECT_FALSE(store.has_value());
    return store ? Error{} : store.error();
  }
  void user(const std::string& name, const std::vector<std::string>& rules) {
    std::vector<std::string> words{"ACL", "SETUSER", name, "on", ">pw"};
    words.insert(words.end(), rules.begin(), rules.end());
    ASSERT_FALSE(RawRedis(server_.port())(words).is_error());
  }
  RedisServer server_;
};

TEST_F(RedisRights, H42AMissingCommandOrKeyPatternIsNamedAtOpen) {
  user("narrow", {"~idem:*", "+set", "+get", "+del", "+hello", "+ping", "+select"});
  const Error narrow = refusal("narrow:pw");
  EXPECT_EQ(narrow.code, errc::denied);
  EXPECT_THAT(narrow.message, HasSubstr("evalsha"));

  user("elsewhere", {"~other:*", "+@all"});
  const Error elsewhere = refusal("elsewhere:pw");
  EXPECT_EQ(elsewhere.code, errc::denied);
  EXPECT_THAT(elsewhere.message, HasSubstr("idem:"));

  user("timeless", {"~idem:*", "+@all", "-time"});
  EXPECT_THAT(refusal("timeless:pw").message, HasSubstr("TIME"));
}

TEST_F(RedisRights, H42TheDocumentedRightsAreEnough) {
  user("app", {"~idem:*", "+hello", "+ping", "+select", "+evalsha", "+eval", "+get", "+set", "+del",
               "+time", "+scan", "+strlen", "+getrange", "+config|get"});
  const auto store = open_redis("redis://app:pw@127.0.0.1:" + std::to_string(server_.port()));
  ASSERT_TRUE(store.has_value()) << store.error().message;
  EXPECT_THAT((*store)->warnings(), IsEmpty());
  IdempotencyService service(*store);
  auto outcome = service.claim(request("k"));
  ASSERT_TRUE(is<Claimed>(outcome));
  EXPECT_TRUE(is<Completed>(service.complete(std::get<Claimed>(*outcome).lease, "r")));
  EXPECT_EQ((*store)->stats().value().success, 1U);
  EXPECT_TRUE(service.sweep().has_value());
}

TEST_F(RedisRights, H42AWrongPasswordIsRefusedWithoutGuessingOn) {
  RawRedis raw(server_.port());
  user("app", {"~*", "+@all"});
  raw({"ACL", "LOG", "RESET"});
  EXPECT_THAT(refusal("app:wrong").message, HasSubstr("WRONGPASS"));
  const auto log = raw({"ACL", "LOG"});
  ASSERT_EQ(log.elements.size(), 1U);
  EXPECT_EQ(log.elements[0].elements[1].integer, 1);  // one entry, counted once

  raw({"CONFIG", "SET", "requirepass", "secret"});
  const auto missing = open_redis(server_.url());
  ASSERT_FALSE(missing.has_value());
  EXPECT_EQ(missing.error().code, errc::denied);
  EXPECT_THAT(missing.error().message, HasSubstr("NOAUTH"));
}

TEST(RedisServers, H43ADownOrMuteServerIsAnErrorWithin300Ms) {
  RedisServer server;
  const auto store = open_redis(server.url("timeout=100ms")).value();
  IdempotencyService service(store);
  const auto all_fail = [&](const char* what) {
    int ran = 0;
    for (int i = 0; i < 10; ++i) {
      const Time begin = system_clock().now();
      const errc error = claim_error(service, std::string(what) + std::to_string(i));
      EXPECT_LT(system_clock().now() - begin, milliseconds(300)) << what;
      EXPECT_TRUE(error == errc::unavailable || error == errc::unknown) << to_string(error);
      ran += error == errc{};
    }
    EXPECT_EQ(ran, 0) << what;
  };
  ASSERT_EQ(claim_error(service, "first"), errc{});
  server.process().freeze();
  all_fail("mute");
  server.process().thaw();
  while (claim_error(service, "back after mute") != errc{}) {
  }
  server.process().stop();
  all_fail("down");
  EXPECT_EQ(claim_error(service, "surely not sent"), errc::unavailable);
  ASSERT_TRUE(server.process().start().has_value());
  const Time back = system_clock().now();
  int tries = 0;
  while (claim_error(service, "back after down") != errc{}) ++tries;
  EXPECT_LT(system_clock().now() - back, seconds(2)) << tries;
}

TEST(RedisServers, H43AnOpenPortThatNeverAnswersFailsOpenInTime) {
  RedisServer server;
  server.process().freeze();
  const Time begin = system_clock().now();
  const auto store = open_redis(server.url("timeout=100ms&connect_timeout=300ms"));
  EXPECT_FALSE(store.has_value());
  EXPECT_LT(system_clock().now() - begin, seconds(2));
  server.process().thaw();
}

TEST(RedisServers, H44TheFirstClaimAfterAnIdleCloseWorks) {
  RedisServer server({"--timeout", "1"});
  const auto store = open_redis(server.url()).value();
  IdempotencyService service(store);
  ASSERT_EQ(claim_error(service, "before"), errc{});
  for (;;) {  // until the server has thrown the idle connection out
    if (RawRedis(server.port())({"CLIENT", "LIST"}).text.find("name=idem ") == std::string::npos) {
      break;
    }
    system_clock().pause(milliseconds(50));
  }
  EXPECT_EQ(claim_error(service, "after"), errc{});
}

TEST(RedisServers, H44AnOutageUnderLoadEndsByItselfAndTriesAreSpaced) {
  RedisServer server({"--appendonly", "yes"});
  const auto store = open_redis(server.url("timeout=100ms")).value();
  IdempotencyService service(store);
  std::atomic<bool> over{false};
  std::atomic<int> succeeded{0}, doubled{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < 8; ++t) {
    threads.emplace_back([&, t] {
      for (int i = 0; !over; ++i) {
        const auto outcome = service.claim(request(std::to_string(t) + "-" + std::to_string(i)));
        if (!outcome) continue;
        ++succeeded;
        if (!is<Claimed>(outcome)) ++doubled;
      }
    });
  }
  while (succeeded < 50) std::this_thread::yield();
  server.process().stop();
  const std::uint64_t tries_before = store->connection_attempts();
  const Time down = system_clock().now();
  while (system_clock().now() - down < seconds(2)) system_clock().pause(milliseconds(20));
  const std::uint64_t tries = store->connection_attempts() - tries_before;
  EXPECT_GE(tries, 2U);
  EXPECT_LE(tries, 10U);  // 20 in 5 s
  ASSERT_TRUE(server.process().start().has_value());
  const Time up = system_clock().now();
  const int then = succeeded;
  while (succeeded == then && system_clock().now() - up < seconds(5)) std::this_thread::yield();
  EXPECT_LT(system_clock().now() - up, seconds(2));
  over = true;
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(doubled, 0);
}

TEST(RedisServers, AChildOfAForkIsToldSo) {
  RedisServer server;
  const auto store = open_redis(server.url()).value();
  const auto in_the_child = [&] {
    Load op;
    op.key.key = "k";
    store->load({&op, 1});
    ::_exit(op.answer.error.code == errc::wrong_process ? 0 : 1);
  };
  EXPECT_EXIT(in_the_child(), ::testing::ExitedWithCode(0), "");
}

}  // namespace
}  // namespace idem::testing
