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

// A record whose key tells the cell's number.
std::string key_of(std::uint32_t number) { return "cell " + std::to_string(number); }

void finish(Slab& slab, std::uint32_t number, std::uint32_t size_class) {
  Draft draft;
  const std::string key = key_of(number);
  CellPlan plan = CellPlan::of_insert({{}, {}, key}, draft, kVirtualStart);
  plan.bits = (plan.bits & ~(7U << CellBits::kClassAt)) | size_class << CellBits::kClassAt;
  plan.size_class = size_class;
  make_cell(slab.cell_at(number), plan, {{}, {}, key}, draft, nullptr);
  slab.set_due(number, size_class, 5);
}

void reclaim_all(Slab& slab) {
  for (int step = 0; step < 4; ++step) {
    const Pin pin;
    slab.reclaim_everywhere(1'000'000);
  }
  slab.trim();
}

// What an empty slab keeps: four warm chunks, a current one per class and stripe, chunk heads.
std::uint64_t kept_at_most(const Slab& slab, std::uint64_t currents) {
  return (4 + currents) * kChunkBytes + std::uint64_t{slab.chunks()} * 64;
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
  EXPECT_EQ(numbers.size(), 3 * 240U);
  {
    const Pin pin;
    EXPECT_EQ(slab.allocate(2), 0U);  // no chunk left for another class
    for (const std::uint32_t number : numbers) slab.retire(number);
    EXPECT_EQ(slab.limbo_cells(), numbers.size());
  }
  reclaim_all(slab);
  EXPECT_EQ(slab.limbo_cells(), 0U);
  const Pin pin;
  const std::uint32_t number = slab.allocate(2);  // chunks that became empty serve any class
  ASSERT_NE(number, 0U);
  finish(slab, number, 2);
}

TEST(Slab, GivesThePagesOfEmptyChunksBack) {
  Slab slab;
  std::vector<std::uint32_t> numbers;
  for (std::uint32_t i = 0; i < 50'000; ++i) {
    const Pin pin;
    const std::uint32_t size_class = 1 + i % kClassLargest;
    numbers.push_back(slab.allocate(size_class));
    ASSERT_NE(numbers.back(), 0U);
    finish(slab, numbers.back(), size_class);
  }
  EXPECT_GT(slab.resident_bytes(), 300 * kChunkBytes);
  for (const std::uint32_t number : numbers) {
    const Pin pin;
    slab.retire(number);
  }
  reclaim_all(slab);
  EXPECT_LE(slab.resident_bytes(), kept_at_most(slab, kClassLargest));
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

// A replaced cell may be used again without a word to the calendar: a sweep that looks at it
// meanwhile comes back in the next millisecond, however late its neighbours are due.
TEST(Slab, TheCalendarComesBackToACellThatMayBeUsedAgain) {
  Slab slab;
  const Pin pin;
  // A run of cells, so that none of its chunk is taken and not told; the last of them.
  const auto sixteen = [&](std::uint32_t size_class) {
    std::uint32_t number = 0;
    for (int i = 0; i < 16; ++i) {
      number = slab.allocate(size_class);
      finish(slab, number, size_class);
      slab.set_due(number, size_class, 1'000);
    }
    return number;
  };
  const auto raised = [&](std::uint32_t chunk) {
    slab.raise_bound(chunk, slab.due_bound(chunk), 10);
    return slab.due_bound(chunk);
  };
  const std::uint32_t replaced = sixteen(1);
  EXPECT_FALSE(Slab::is_due(raised(0), 999));
  slab.set_due(replaced, 1, 5);  // so that the bound may be raised again
  slab.retire(replaced);
  EXPECT_FALSE(Slab::is_due(raised(0), 10));
  EXPECT_TRUE(Slab::is_due(slab.due_bound(0), 11));

  // An expired one goes home to its chunk, and is counted when it is taken.
  const std::uint32_t expired = sixteen(2);
  Slab::Chain chain;
  slab.retire_later(chain, expired);
  slab.retire(chain);
  EXPECT_FALSE(Slab::is_due(raised(1), 999));
  EXPECT_TRUE(Slab::is_due(slab.due_bound(1), 1'000));
}

// A thread that replaces one record over and over writes a few cells in turn.
TEST(Slab, ReplacedCellsAreUsedAgainByTheirThread) {
  Slab slab;
  std::set<std::uint32_t> numbers;
  for (int i = 0; i < 50'000; ++i) {
    const Pin pin;
    const std::uint32_t number = slab.allocate(1);
    ASSERT_NE(number, 0U);
    finish(slab, number, 1);
    numbers.insert(number);
    slab.retire(number);
    if (i % 8 == 0) slab.reclaim(64);
  }
  EXPECT_LE(numbers.size(), 4'000U);
  reclaim_all(slab);
  EXPECT_EQ(slab.limbo_cells(), 0U);
  EXPECT_LE(slab.resident_bytes(), kept_at_most(slab, 1));
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
      if (const std::uint32_t other = shelf.exchange(number)) {
        // Nobody else was given this cell.
        EXPECT_EQ(slab.cell(other).key().key, key_of(other));
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
  EXPECT_LE(slab.resident_bytes(), kept_at_most(slab, 3 * kClassLargest));
}

TEST(Shard, RefusesCleanlyWhenItsNumbersAreUsedUp) {
  VirtualClock clock;
  Capacity unbounded(0, 0);
  Slab slab(2);
  Shard::Options options;
  options.slab = &slab;
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
    const std::uint64_t hash = i * 0x9E3779B97F4A7C15U;
    (void)shard.insert(shard.first_word(hash), hash, op, moment);
    if (!memory_test::written(op.answer)) break;
    ++written;
  }
  EXPECT_EQ(written, 2 * 240U);
  EXPECT_EQ(op.answer.state, Answer::State::failed);
  EXPECT_EQ(op.answer.error.code, errc::capacity);
  clock.advance(Micros(1'000));
  {
    const Pin pin;
    std::vector<std::uint32_t> numbers(480);
    std::uint32_t index = 0;
    Slab::Chain chain;
    const std::size_t due = slab.find_due(0, Due::code(clock.now(), options.birth), index, numbers);
    EXPECT_EQ(due, 240U);
    EXPECT_EQ(index, Slab::kNoIndex);
    for (std::size_t i = 0; i < due; ++i) {
      const std::string_view key = slab.cell(numbers[i]).key().key;
      const std::uint64_t n = std::stoull(std::string(key.substr(2)));
      EXPECT_EQ(shard.evict(n * 0x9E3779B97F4A7C15U, numbers[i], clock.now(), chain),
                Shard::Evicted::yes);
    }
    slab.retire(chain);
  }
  reclaim_all(slab);
  const Pin pin;
  Moment moment(clock);
  op.key = {{}, {}, "after"};
  (void)shard.insert(shard.first_word(7), 7, op, moment);
  EXPECT_TRUE(memory_test::written(op.answer));
}

}  // namespace
}  // namespace idem::memory
