// The slab, the epochs and the shard by themselves: ends of the number space, who holds memory.
#include <atomic>
#include <semaphore>
#include <set>

#include "epoch.hpp"
#include "memory_test_support.hpp"
#include "shard.hpp"
#include "slab.hpp"

namespace idem::memory {
namespace {

using memory_test::in_threads;
using memory_test::name;

void finish(Slab& slab, std::uint32_t number, std::uint32_t size_class) {
  Cell& cell = *new (&slab.cell(number)) Cell{};
  cell.size_class = static_cast<std::uint8_t>(size_class);
  slab.set_due(number, size_class, 5, 1);
}

void reclaim_all(Slab& slab) {
  for (int step = 0; step < 4; ++step) {
    const Pin pin;
    slab.reclaim(1'000'000);
  }
}

TEST(Slab, GivesEachCellOnceAndRefusesCleanlyAtTheEnd) {
  Slab slab(3);
  std::set<std::uint32_t> numbers;
  for (std::uint32_t number = 1; number != 0;) {
    const Pin pin;
    number = slab.allocate(1);
    if (number == 0) break;
    finish(slab, number, 1);
    EXPECT_TRUE(numbers.insert(number).second);
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(&slab.cell(number)) % kGranuleBytes, 0U);
  }
  EXPECT_EQ(numbers.size(), 3 * 163U);
  {
    const Pin pin;
    EXPECT_EQ(slab.allocate(2), 0U);  // no chunk left for another class
    for (const std::uint32_t number : numbers) slab.retire(number);
    EXPECT_EQ(slab.limbo_cells(), numbers.size());
  }
  reclaim_all(slab);
  EXPECT_EQ(slab.limbo_cells(), 0U);
  EXPECT_LE(slab.resident_bytes(), kChunkBytes + 100);  // one chunk stays warm
  const Pin pin;
  const std::uint32_t number = slab.allocate(2);
  ASSERT_NE(number, 0U);
  finish(slab, number, 2);
}

TEST(Slab, AStalledReaderHoldsMemoryBackAndStopsNobody) {
  Slab slab;
  std::binary_semaphore pinned(0);
  std::binary_semaphore leave(0);
  std::thread stalled([&] {
    const Pin pin;
    pinned.release();
    leave.acquire();
  });
  pinned.acquire();
  for (int i = 0; i < 10'000; ++i) {
    const Pin pin;
    const std::uint32_t number = slab.allocate(1);
    ASSERT_NE(number, 0U);
    finish(slab, number, 1);
    slab.retire(number);
    slab.reclaim(64);
  }
  EXPECT_GE(slab.limbo_cells(), 9'000U);  // the gauge tells
  leave.release();
  stalled.join();
  reclaim_all(slab);
  EXPECT_EQ(slab.limbo_cells(), 0U);
}

TEST(Slab, CellsOfOneThreadAreFreedByAnother) {
  Slab slab;
  const std::size_t rounds = memory_test::scaled(200'000);
  std::atomic<std::uint32_t> shelf{0};
  in_threads(2, [&](std::size_t t) {
    for (std::size_t i = 0; i < rounds; ++i) {
      const Pin pin;
      const auto size_class = static_cast<std::uint32_t>(1 + (i + t) % kClassLargest);
      const std::uint32_t number = slab.allocate(size_class);
      ASSERT_NE(number, 0U);
      finish(slab, number, size_class);
      slab.cell(number).hash = number;
      if (const std::uint32_t other = shelf.exchange(number)) {
        EXPECT_EQ(slab.cell(other).hash, other);  // nobody else was given this cell
        slab.retire(other);
      }
      slab.reclaim(64);
    }
  });
  {
    const Pin pin;
    slab.retire(shelf.load());
  }
  reclaim_all(slab);
  EXPECT_EQ(slab.limbo_cells(), 0U);
  EXPECT_LE(slab.resident_bytes(), kChunkBytes + slab.chunks() * 16);
}

TEST(Shard, RefusesCleanlyWhenItsNumbersAreUsedUp) {
  VirtualClock clock;
  Capacity unbounded(0, 0);
  Shard::Options options;
  options.chunks_max = 2;
  options.birth = clock.now();
  options.capacity = &unbounded;
  Shard shard(options);
  std::size_t written = 0;
  Insert op;
  for (std::uint64_t i = 0; i < 1'000; ++i) {
    const Pin pin;
    Moment moment(clock);
    const std::string key = name("k", i);
    op = {{{}, {}, key}, memory_test::claim(1, Micros(1), Micros(1'000)), {}};
    (void)shard.insert(i * 0x9E3779B97F4A7C15U, op, moment);
    if (!memory_test::written(op.answer)) break;
    ++written;
  }
  EXPECT_EQ(written, 2 * 163U);
  EXPECT_EQ(op.answer.state, Answer::State::failed);
  EXPECT_EQ(op.answer.error.code, errc::capacity);
  EXPECT_EQ(shard.records(), written);
  clock.advance(Micros(1'000));
  for (int step = 0; step < 4; ++step) {
    const Pin pin;
    (void)shard.evict(clock.now(), 1'000);
    shard.reclaim(1'000);
  }
  const Pin pin;
  Moment moment(clock);
  op.key = {{}, {}, "after"};
  (void)shard.insert(7, op, moment);
  EXPECT_TRUE(memory_test::written(op.answer));
}

}  // namespace
}  // namespace idem::memory
