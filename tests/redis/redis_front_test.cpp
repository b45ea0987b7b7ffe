// A front that is away when the tiered store is opened costs nothing but speed; one that is wrong
// is told at once.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "idem/clock.hpp"
#include "idem/open.hpp"
#include "idem/testing/matchers.hpp"
#include "redis_servers.hpp"

namespace idem::testing {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using ::testing::HasSubstr;

std::string tiered_url(const std::string& front) {
  std::string encoded;
  for (const char c : front) {
    if (c == ':') {
      encoded += "%3A";
    } else if (c == '/') {
      encoded += "%2F";
    } else if (c == '?') {
      encoded += "%3F";
    } else if (c == '@') {
      encoded += "%40";
    } else if (c == '=') {
      encoded += "%3D";
    } else {
      encoded += c;
    }
  }
  return "tiered:?circuit=50ms&front=" + encoded + "&back=sqlite%3A%3Amemory%3A";
}

TEST(RedisFront, AStoreOpensWhileItsFrontIsDownAndUsesItOnceItIsThere) {
  RedisServer redis;
  redis.process().stop();
  std::string warned;
  OpenOptions options;
  options.warn = [&](std::string_view text) { warned += text; };
  const auto store = open(tiered_url(redis.url()), options);
  ASSERT_TRUE(store.has_value()) << store.error().message;
  EXPECT_THAT(warned, HasSubstr("front"));
  IdempotencyService service(*store);
  auto claim = service.claim(request("k1"));
  ASSERT_THAT(claim, IsClaimed());
  EXPECT_THAT(service.complete(std::get<Claimed>(*claim).lease, "r1"), IsCompleted());
  EXPECT_THAT(service.claim(request("k1")), ReplayOf("r1"));

  ASSERT_TRUE(redis.process().start().has_value());
  const Time back = system_clock().now();
  RawRedis raw(redis.port());
  int i = 0;
  while (raw({"DBSIZE"}).integer == 0 && system_clock().now() - back < seconds(20)) {
    EXPECT_THAT(service.claim(request("again" + std::to_string(i++))), IsClaimed());
  }
  EXPECT_LT(system_clock().now() - back, seconds(2));
  EXPECT_THAT(service.claim(request("k1")), ReplayOf("r1"));
}

TEST(RedisFront, AWrongFrontIsAnErrorAtOpen) {
  RedisServer redis({"--requirepass", "secret"});
  const auto no_password = open(tiered_url(redis.url()));
  ASSERT_FALSE(no_password.has_value());
  EXPECT_EQ(no_password.error().code, errc::denied);
  EXPECT_THAT(no_password.error().message, HasSubstr("front"));
  const auto bad_url = open(tiered_url("redis://127.0.0.1/none"));
  ASSERT_FALSE(bad_url.has_value());
  EXPECT_EQ(bad_url.error().code, errc::invalid_argument);
}

TEST(RedisFront, AStoreGoesWhileItsFrontIsStillAway) {
  RedisServer redis;
  redis.process().stop();
  const auto store = open(tiered_url(redis.url()));
  ASSERT_TRUE(store.has_value()) << store.error().message;
}

}  // namespace
}  // namespace idem::testing
