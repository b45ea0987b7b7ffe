// The background sweeper: on a virtual clock it runs in the thread that advances it.
#include "idem/sweeper.hpp"

#include <gtest/gtest.h>

#include "idem/open.hpp"
#include "idem/testing/fault_store.hpp"
#include "idem/testing/matchers.hpp"

namespace idem {
namespace {

using namespace std::chrono_literals;
using namespace testing;  // NOLINT: the matchers

class SweeperTest : public ::testing::Test {
 protected:
  static ServiceOptions options(Clock& clock) {
    ServiceOptions options;
    options.clock = &clock;
    return options;
  }
  void crash(const std::string& key) {
    ASSERT_THAT(service_.claim({key, Fingerprint::of_bytes("b")}), IsClaimed());
  }

  VirtualClock clock_;
  std::shared_ptr<FaultStore> store_ =
      std::make_shared<FaultStore>(open("sqlite::memory:", {.clock = &clock_}).value(), clock_);
  IdempotencyService service_{store_, options(clock_)};
};

TEST_F(SweeperTest, FreesWhatNobodyReportedOnAndWhatIsPastItsTime) {
  for (int i = 0; i < 10; ++i) crash("k" + std::to_string(i));
  Sweeper sweeper(service_, {.every = 30s, .limit = 3});
  clock_.advance(600s);
  EXPECT_EQ(sweeper.counts().abandoned, 0U) << "stuck_after counts from the last claim";
  clock_.advance(100s);
  EXPECT_EQ(sweeper.counts().abandoned, 10U);
  clock_.advance(24h);  // failed_ttl
  clock_.advance(100s);
  EXPECT_EQ(sweeper.counts().expired, 10U);
  EXPECT_EQ(store_->stats().value().records(), 0U);
}

TEST_F(SweeperTest, LeavesWorkThatLives) {
  auto claimed = service_.claim({"k", Fingerprint::of_bytes("b")});
  Lease& lease = std::get<Claimed>(*claimed).lease;
  Sweeper sweeper(service_, {.every = 1s});
  for (int i = 0; i < 100; ++i) {
    clock_.advance(20s);
    ASSERT_THAT(service_.renew(lease), IsRenewed());
  }
  EXPECT_GT(sweeper.counts().rounds, 1000U);
  EXPECT_EQ(sweeper.counts().abandoned + sweeper.counts().expired, 0U);
}

TEST_F(SweeperTest, ARoundIsBoundedAndTheRestIsTakenUpSoon) {
  for (int i = 0; i < 20; ++i) crash("k" + std::to_string(i));
  clock_.advance(1000s);
  Sweeper sweeper(service_, {.every = 10s, .limit = 2, .steps_max = 1});
  while (sweeper.counts().rounds == 0) clock_.advance(10ms);
  EXPECT_EQ(sweeper.counts().abandoned, 2U);
  clock_.advance(12s);  // nine more rounds, each after a second, give or take a fifth
  EXPECT_EQ(sweeper.counts().abandoned, 20U);
}

TEST_F(SweeperTest, AnErrorEndsTheRoundAndTheNextGoesOn) {
  crash("k");
  clock_.advance(1000s);
  store_->on_every_call(Verb::sweep, Fault::refuse);
  store_->on_every_call(Verb::list, Fault::refuse);
  Sweeper sweeper(service_, {.every = 10s});
  clock_.advance(100s);
  EXPECT_GT(sweeper.counts().errors, 5U);
  store_->calm();
  clock_.advance(20s);
  EXPECT_EQ(sweeper.counts().abandoned, 1U);
}

TEST_F(SweeperTest, StopsCleanly) {
  Sweeper sweeper(service_, {.every = 1s});
  clock_.advance(10s);
  sweeper.stop();
  sweeper.stop();
  const auto rounds = sweeper.counts().rounds;
  EXPECT_GT(rounds, 5U);
  clock_.advance(10s);
  EXPECT_EQ(sweeper.counts().rounds, rounds);
}

TEST_F(SweeperTest, StopsCleanlyOnTheRealClock) {
  IdempotencyService service(open("memory:").value());
  Sweeper sweeper(service, {.every = 1ms});
  while (sweeper.counts().rounds < 3) std::this_thread::yield();
}

TEST_F(SweeperTest, BadOptionsAreFoundAtTheStart) {
  EXPECT_THROW(Sweeper(service_, {.every = 0s}), Exception);
  EXPECT_THROW(Sweeper(service_, {.limit = 0}), Exception);
}

}  // namespace
}  // namespace idem
