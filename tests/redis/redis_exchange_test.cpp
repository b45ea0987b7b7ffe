// Claims of one key that are asked once: each is told what it would have been told by itself.
#include <gtest/gtest.h>

#include "exchange.hpp"

namespace idem::redis {
namespace {

constexpr std::string_view kKey = "idem:0::0::k";

ExchangePtr claim_with(std::string_view value) {
  std::string payload;
  append_command(payload, {"SET", kKey, value, "NX", "GET", "PX", "1000"});
  const std::size_t key_at = payload.find(kKey);
  const std::size_t value_at = payload.find(value);
  return std::make_shared<Exchange>(std::make_shared<Gathering>(1), std::move(payload), 1,
                                    Behind{true, 0, {}},
                                    Claim{key_at, kKey.size(), value_at, value.size()});
}

Reply bulk(std::string_view text) {
  Reply reply;
  reply.type = Reply::Type::bulk;
  reply.text = text;
  return reply;
}

void finish(Exchange& exchange) {
  Ringing ringing;
  exchange.finish({}, ringing);
}

// Two owners of one claim would run the request twice.
TEST(RedisExchange, ARiderFindsWhatTheClaimBeforeItWrote) {
  const auto first = claim_with("the first's record"), rider = claim_with("the rider's record");
  EXPECT_EQ(first->claimed_key(), kKey);
  first->take_along(rider);
  EXPECT_TRUE(first->send());
  EXPECT_TRUE(first->take(Reply{}));
  first->take_time(Time(Micros(7)));
  EXPECT_FALSE(rider->done());
  finish(*first);
  EXPECT_EQ(first->replies().at(0).type, Reply::Type::nil);
  ASSERT_TRUE(rider->done());
  EXPECT_EQ(rider->replies().at(0).text, "the first's record");
  EXPECT_EQ(rider->served_at(), Time(Micros(7)));
}

TEST(RedisExchange, ARiderFindsWhatTheClaimBeforeItFound) {
  const auto first = claim_with("one"), second = claim_with("two"), third = claim_with("three");
  first->take_along(second);
  first->take_along(third);
  EXPECT_TRUE(first->send());
  EXPECT_TRUE(first->take(bulk("what stood there")));
  finish(*first);
  for (const ExchangePtr& one : {first, second, third})
    EXPECT_EQ(one->replies().at(0).text, "what stood there");
}

TEST(RedisExchange, ALostConnectionIsToldToRidersToo) {
  const auto first = claim_with("one"), rider = claim_with("two");
  first->take_along(rider);
  EXPECT_TRUE(first->send());
  Ringing ringing;
  first->finish(idem::fail(errc::unknown, "lost"), ringing);
  ASSERT_TRUE(rider->done());
  EXPECT_EQ(rider->error().code, errc::unknown);
}

// A claim whose caller gave up before it was sent must not take its riders with it.
TEST(RedisExchange, WhoeverRidesWithAWithdrawnClaimIsSentInItsPlace) {
  const auto first = claim_with("one"), gone = claim_with("two"), heir = claim_with("three"),
             last = claim_with("four");
  for (const ExchangePtr& rider : {gone, heir, last}) first->take_along(rider);
  EXPECT_TRUE(first->withdraw());
  EXPECT_TRUE(gone->withdraw());
  EXPECT_FALSE(first->send());
  EXPECT_EQ(first->heir(), heir);
  EXPECT_TRUE(heir->send());
  EXPECT_TRUE(heir->take(Reply{}));
  finish(*heir);
  EXPECT_EQ(last->replies().at(0).text, "three");
  EXPECT_FALSE(gone->done());
  EXPECT_EQ(first->heir(), nullptr);
}

// A line is closed only if nobody waits on it, riders included.
TEST(RedisExchange, ALineOnWhichARiderWaitsIsNotAbandoned) {
  const auto first = claim_with("one"), rider = claim_with("two");
  first->take_along(rider);
  EXPECT_TRUE(first->send());
  EXPECT_FALSE(rider->withdraw());
  first->abandon();
  EXPECT_FALSE(first->abandoned());
  rider->abandon();
  EXPECT_TRUE(first->abandoned());
}

}  // namespace
}  // namespace idem::redis
