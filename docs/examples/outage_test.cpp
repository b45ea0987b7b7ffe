// What your code does when its Redis dies: docs/testing.md quotes this.
#include <gtest/gtest.h>

#include <string>

#include "idem/open.hpp"
#include "idem/service.hpp"
#include "idem/testing/server_fixture.hpp"

namespace {

TEST(Outage, APaymentIsRefusedWhileTheStoreIsAwayAndReplayedAfterwards) {
  const auto redis = idem::testing::ServerFixture::redis({"--appendonly", "yes"}).value();
  idem::IdempotencyService service(idem::open(redis->url("timeout=100ms")).value());
  const idem::Request request{"k1", idem::Fingerprint::of_bytes("100")};
  int paid = 0;
  const auto pay = [&](idem::Attempt&) { return "ok:" + std::to_string(++paid); };
  ASSERT_TRUE(service.execute(request, pay).has_value());

  redis->process().kill();  // what does your code do now?
  EXPECT_FALSE(service.execute(request, pay).has_value());

  ASSERT_TRUE(redis->process().start().has_value());
  while (!service.execute(request, pay).has_value()) {
  }
  EXPECT_EQ(paid, 1);
}

}  // namespace
