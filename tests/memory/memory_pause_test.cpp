// A thread frozen anywhere inside the memory store blocks no other operation: for each pause point
// of backends/memory one thread is frozen there while others complete thousands of operations on
// the same key and shard.
#include <array>
#include <atomic>
#include <cstdlib>
#include <mutex>
#include <semaphore>
#include <set>
#include <string>
#include <string_view>

#include "idem/pause_point.hpp"
#include "memory_test_support.hpp"

#ifndef IDEM_PAUSE_POINTS
#error "these tests need a build with IDEM_PAUSE_POINTS"
#endif

namespace idem::memory_test {
namespace {

constexpr std::array<std::string_view, 37> kPoints{"memory.pinned",
                                                   "memory.insert.absent",
                                                   "memory.insert.linked",
                                                   "memory.insert.settle",
                                                   "memory.replace.found",
                                                   "memory.replace.swapped",
                                                   "memory.load.found",
                                                   "memory.remove.floor",
                                                   "memory.remove.flagged",
                                                   "memory.unlink.won",
                                                   "memory.unlink.passed",
                                                   "memory.evict.expired",
                                                   "memory.evict.flagged",
                                                   "memory.grow.slab",
                                                   "memory.grow.segment",
                                                   "memory.grow.count",
                                                   "memory.grow.bucket",
                                                   "memory.grow.linked",
                                                   "memory.slab.take",
                                                   "memory.slab.free",
                                                   "memory.slab.drop",
                                                   "memory.slab.list",
                                                   "memory.slab.adopt",
                                                   "memory.reclaim.retire",
                                                   "memory.reclaim.advance",
                                                   "memory.reclaim.detached",
                                                   "memory.watch.push",
                                                   "memory.watch.notify",
                                                   "memory.pin",
                                                   "memory.walk.record",
                                                   "memory.settle.decided",
                                                   "memory.find.record",
                                                   "memory.reclaim.oldest",
                                                   "memory.evict.bound",
                                                   "memory.slab.due",
                                                   "memory.grow.marker",
                                                   "memory.grow.usable"};

// One thread's appointment with a pause point.
struct Freeze {
  std::string_view point;
  std::atomic<bool> done{false};  // was frozen once
  std::binary_semaphore frozen{0};
  std::binary_semaphore resume{0};
};

thread_local Freeze* appointment = nullptr;
std::mutex seen_guard;
std::set<std::string> seen_points;

void at_pause_point(const char* point) {
  thread_local std::set<std::string_view> known;
  if (known.insert(point).second) {
    const std::lock_guard<std::mutex> guard(seen_guard);
    seen_points.insert(point);
  }
  Freeze* const mine = appointment;
  if (mine == nullptr || mine->point != point || mine->done.exchange(true)) return;
  mine->frozen.release();
  mine->resume.acquire();
}

// Passes every pause point, given time; stops when it was frozen once.
void do_everything(MemoryStore& store, VirtualClock& clock, const std::atomic<bool>& done) {
  for (int round = 0; round < 200 && !done; ++round) {
    store.watch(Key("hot"), [] {});
    Answer held = insert(store, "hot", claim(1, 1ms, 1s));
    load(store, "hot");
    for (int i = 0; i < 70 && !done; ++i) {
      held = load(store, "hot");
      held = replace(store, "hot", held.held.version, claim(1, 1ms, 1s));
    }
    remove(store, "hot", held.held.version);
    for (std::size_t i = 0; i < 1'500 && !done; ++i)
      insert(store, name("brief", i), claim(1, 1ms, 1ms));
    clock.advance(2ms);
    for (std::size_t i = 0; i < 20 && !done; ++i)
      insert(store, name("lasting", i + 20 * static_cast<std::size_t>(round)), claim(1));
    while (!done && store.sweep(100).value() != 0) {
    }
  }
}

class MemoryPauseTest : public ::testing::Test {
 protected:
  MemoryPauseTest() { pause_point_hook.store(&at_pause_point, std::memory_order_release); }
  ~MemoryPauseTest() override { pause_point_hook.store(nullptr, std::memory_order_release); }

  [[nodiscard]] MemoryOptions options() {
    MemoryOptions made;
    made.clock = &clock;
    made.shards = 1;
    return made;
  }
  VirtualClock clock;
};

// What the others do meanwhile; every one of these calls must return.
// How many that were.
std::size_t work_around(MemoryStore& store, VirtualClock& clock, std::size_t rounds) {
  std::atomic<std::size_t> calls{0};
  in_threads(2, [&](std::size_t t) {
    std::size_t won = 0;
    for (std::size_t i = 0; i < rounds; ++i) {
      Answer answer;
      if (claim_or_take_over(store, "hot", claim(static_cast<std::uint8_t>(t + 2), 1ms, 1s),
                             answer)) {
        ++won;
        answer = replace(store, "hot", answer.held.version, success(answer.held, "R", 1ms));
        if (i % 3 == 0) answer = remove(store, "hot", answer.held.version);
      }
      load(store, "hot");
      ASSERT_TRUE(written(insert(store, name(t == 0 ? "left" : "right", i), claim(2, 1ms, 1ms))) ||
                  i >= rounds);
      store.watch(Key("hot"), [] {});
      if (i % 8 == 0) clock.advance(1ms);
      if (i % 64 == 0) (void)store.sweep(50);
    }
    EXPECT_GT(won, rounds / 100);
    calls += rounds * 4 + won;
  });
  return calls;
}

TEST_F(MemoryPauseTest, AThreadFrozenAnywhereBlocksNobody) {
  for (const std::string_view point : kPoints) {
    SCOPED_TRACE(point);
    clock.advance(1h);
    MemoryStore store(options());
    Freeze helper{point == "memory.unlink.passed" ? "memory.replace.swapped" : ""};
    Freeze freeze{point};
    std::thread helping;
    if (!helper.point.empty()) {
      // Leaves a flagged record in the list, for the frozen thread to pass.
      helping = std::thread([&] {
        appointment = &helper;
        do_everything(store, clock, helper.done);
      });
      helper.frozen.acquire();
    }
    std::thread victim([&] {
      appointment = &freeze;
      do_everything(store, clock, freeze.done);
      if (!freeze.done.exchange(true)) freeze.frozen.release();  // never came there
    });
    freeze.frozen.acquire();
    const std::uint64_t limbo = store.gauges().limbo;
    const std::size_t rounds = std::getenv("IDEM_NIGHTLY") != nullptr ? 15'000 : 3'000;
    const std::size_t calls = work_around(store, clock, scaled(rounds, 10));
    EXPECT_GE(calls, scaled(rounds, 10) * 8);  // nightly: 120,000 while one thread is frozen
    const std::uint64_t held_back = store.gauges().limbo;
    freeze.resume.release();
    victim.join();
    if (helping.joinable()) {
      helper.resume.release();
      helping.join();
    }
    {
      const std::lock_guard<std::mutex> guard(seen_guard);
      EXPECT_EQ(seen_points.count(std::string(point)), 1U) << "no thread came there";
    }
    clock.advance(1h);
    while (store.sweep(1'000).value() != 0) {
    }
    EXPECT_EQ(store.gauges().records, 0U);
    EXPECT_EQ(store.gauges().limbo, 0U);  // all memory came home
    EXPECT_EQ(store.stats().value().records(), 0U);
    RecordProperty(std::string(point), std::to_string(held_back - limbo));
  }
  // The table holds every pause point there is, as far as these runs came by.
  std::set<std::string> table(kPoints.begin(), kPoints.end());
  EXPECT_EQ(seen_points, table);
}

// H21: the sweeper is held between "expired" and "remove", and the key is claimed meanwhile.
TEST_F(MemoryPauseTest, H21TheSweeperDoesNotDeleteAFreshRecord) {
  MemoryStore store(options());
  const Answer old = insert(store, "k", claim(1, 1ms, 1ms));
  clock.advance(1ms);
  Freeze freeze{"memory.evict.expired"};
  std::uint64_t swept = 1;
  std::thread sweeper([&] {
    appointment = &freeze;
    swept = store.sweep(10).value();
  });
  freeze.frozen.acquire();
  const Answer fresh = replace(store, "k", old.held.version, claim(2, 10s, 20s));
  ASSERT_TRUE(written(fresh));
  freeze.resume.release();
  sweeper.join();
  EXPECT_EQ(swept, 0U);
  const Answer third = insert(store, "k", claim(3));
  ASSERT_TRUE(stands(third));
  EXPECT_EQ(third.held, fresh.held);
  EXPECT_TRUE(written(replace(store, "k", fresh.held.version, success(fresh.held, "R"))));
}

// H21, free run: short lives, claimers and a sweeper at full speed.
TEST_F(MemoryPauseTest, H21CompletionsAreLostOnlyToTakeovers) {
  pause_point_hook.store(nullptr, std::memory_order_release);
  MemoryStore store(options());
  std::atomic<bool> stop{false};
  std::atomic<std::size_t> grants{0};
  std::atomic<std::size_t> endings{0};
  std::atomic<std::size_t> vanished{0};
  std::thread sweeper([&] {
    while (!stop) {
      clock.advance(200us);
      (void)store.sweep(100);
    }
  });
  in_threads(4, [&](std::size_t t) {
    for (std::size_t i = 0; i < scaled(20'000, 10); ++i) {
      const Key key(name("k", i % 7));
      if (i % 8 == 0) clock.advance(200us);
      Answer held;
      if (!claim_or_take_over(store, key, claim(static_cast<std::uint8_t>(t), 1ms, 1ms), held))
        continue;
      ++grants;
      const Answer done = replace(store, key, held.held.version, success(held.held, "R", 1ms));
      if (written(done)) ++endings;
      // Not taken over, and not expired: then it must have been there.
      if (absent(done) && done.now < held.held.expires_at) ++vanished;
      if (stands(done) && done.held.fence == held.held.fence && done.now < held.held.expires_at)
        ++vanished;
    }
  });
  stop = true;
  sweeper.join();
  EXPECT_EQ(vanished, 0U);
  EXPECT_GT(grants, 100U);
  EXPECT_GT(endings, 100U);
}

// A reader frozen in its pin holds memory back, but the store goes on and says so.
TEST_F(MemoryPauseTest, AFrozenReaderIsSeenInTheLimboGauge) {
  MemoryStore store(options());
  insert(store, "hot", claim(1));
  Freeze freeze{"memory.load.found"};
  std::thread reader([&] {
    appointment = &freeze;
    EXPECT_TRUE(stands(load(store, "hot")));
  });
  freeze.frozen.acquire();
  Answer held = load(store, "hot");
  for (int i = 0; i < 10'000; ++i) held = replace(store, "hot", held.held.version, claim(1));
  EXPECT_GE(store.gauges().limbo, 9'900U);
  freeze.resume.release();
  reader.join();
  for (int i = 0; i < 10'000; ++i) held = replace(store, "hot", held.held.version, claim(1));
  EXPECT_LE(store.gauges().limbo, 2'200U);  // what is kept for use, and some
}

}  // namespace
}  // namespace idem::memory_test
