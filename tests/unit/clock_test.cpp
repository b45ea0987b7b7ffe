#include "idem/clock.hpp"

#include <gtest/gtest.h>

#include <future>
#include <latch>
#include <thread>
#include <vector>

namespace idem {
namespace {

using namespace std::chrono_literals;

// H07: hours::max() in microseconds overflows.
TEST(Duration, H07ConversionsSaturateInsteadOfOverflowing) {
  EXPECT_GT(Duration(std::chrono::hours::max()).micros(), kDurationMax);
  EXPECT_GT(Duration(std::chrono::milliseconds::max()).micros(), kDurationMax);
  EXPECT_LT(Duration(std::chrono::hours::min()).micros(), Micros(0));
  EXPECT_EQ(Duration(30 * 24h).micros(), std::chrono::seconds(2'592'000));
  EXPECT_EQ(Duration(std::chrono::duration<double>(0.5)).micros(), 500ms);
}

TEST(VirtualClock, RunsDueWorkInOrderInTheCallerAtItsOwnInstant) {
  VirtualClock clock;
  const auto timers = clock.timers();
  std::vector<std::pair<int, Micros>> ran;
  const auto note = [&](int what) {
    return [&, what] { ran.emplace_back(what, clock.now() - kVirtualStart); };
  };
  timers->call_at(kVirtualStart + 2s, note(2));
  timers->call_at(kVirtualStart + 1s, [&] {
    note(1)();
    timers->call_at(kVirtualStart + 1500ms, note(15));
  });
  timers->call_at(kVirtualStart + 3s, note(3));
  EXPECT_TRUE(timers->cancel(timers->call_at(kVirtualStart + 1s, note(99))));
  clock.advance(2500ms);
  EXPECT_EQ(ran, (std::vector<std::pair<int, Micros>>{{1, 1s}, {15, 1500ms}, {2, 2s}}));
  EXPECT_EQ(clock.now(), kVirtualStart + 2500ms);
  timers->call_at(clock.now(), note(0));
  EXPECT_EQ(ran.back().first, 0);
}

TEST(VirtualClock, DroppedQueuesNeverRun) {
  VirtualClock clock;
  bool ran = false;
  clock.timers()->call_at(kVirtualStart + 1s, [&] { ran = true; });
  clock.advance(2s);
  EXPECT_FALSE(ran);
}

TEST(SystemClock, RunsWorkOnItsOwnThreadAndCancelWaitsForIt) {
  const auto timers = system_clock().timers();
  std::promise<std::thread::id> ran_on;
  timers->call_at(system_clock().now(), [&] { ran_on.set_value(std::this_thread::get_id()); });
  EXPECT_NE(ran_on.get_future().get(), std::this_thread::get_id());

  EXPECT_TRUE(timers->cancel(timers->call_at(system_clock().now() + 1h, [] { FAIL(); })));

  std::latch started(1);
  std::latch go(1);
  bool done = false;
  const auto id = timers->call_at(system_clock().now(), [&] {
    started.count_down();
    go.wait();
    done = true;
  });
  started.wait();
  std::thread canceller([&] {
    EXPECT_FALSE(timers->cancel(id));
    EXPECT_TRUE(done);
  });
  go.count_down();
  canceller.join();
}

TEST(SystemClock, IsNearTheWallAndNeverGoesBack) {
  Time last = system_clock().now();
  EXPECT_GT(last, kVirtualStart);
  for (int i = 0; i < 1000; ++i) {
    const Time now = system_clock().now();
    EXPECT_GE(now, last);
    last = now;
  }
}

}  // namespace
}  // namespace idem
