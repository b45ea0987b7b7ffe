// What keeps a store at its size: expired records go, retired cells come home. Each write does a
// small share, a sweep does all of it.
//
// Who expires is found in the calendar (slab.hpp), chunk by chunk, and removed from its shard's
// list like any other removal. A share is done once in kWritesPerRound writes of a thread, so that
// the misses of many removals overlap: first all cells are fetched, then all buckets, then what
// those lead to, then each goes. Threads that meet at a chunk part again, each by another distance:
// else they would go on side by side, each removing every second record of a line they both write.
#pragma once

#include <cstddef>
#include <cstdint>

#include "idem/time.hpp"
#include "shard.hpp"
#include "slab.hpp"

namespace idem::memory {

// Given by the store: the shard that a record in a cell belongs to.
class ShardOf {
 public:
  struct Home {
    Shard* shard = nullptr;
    std::uint64_t hash = 0;
  };
  virtual ~ShardOf() = default;
  [[nodiscard]] virtual Home home_of(const Cell& cell) const = 0;
};

class Housekeeping {
 public:
  Housekeeping(Slab& slab, const ShardOf& shard_of, Time birth)
      : slab_(slab), shard_of_(shard_of), birth_(birth) {}

  // All of these only while pinned.

  // After writes by the calling thread. How many expired records went: mostly none.
  [[nodiscard]] std::size_t after_writes(std::uint32_t count, Time now) {
    // Its own counter, of all stores together: it only paces.
    std::uint32_t& writes = epoch::seat_taken().writes;
    const std::uint32_t before = writes;
    writes += count;
    return before / kWritesPerRound == writes / kWritesPerRound ? 0 : round(now);
  }
  // Removes up to `limit` expired records of chunks; `looked` counts those gone through, from chunk
  // `first` on and around. One call looks at 1,024 more at most.
  [[nodiscard]] std::size_t evict(Time now, std::size_t limit, std::uint32_t first,
                                  std::uint32_t& looked);

  // Exact when nothing runs.
  [[nodiscard]] std::uint64_t records() const;
  // After inserts or removals, the last of them in that shard. A shard hears of every 16th of a
  // thread's, and counts it as 16: if it grows then, by 16 buckets, the thread links one of them
  // for each of its inserts to come. One that shares its stripe links all of them there and then.
  void added(Shard& shard, std::uint32_t count) {
    Stripe& stripe = mine();
    Shard::Growth shared;
    Shard::Growth& growth = epoch::seat_taken().alone ? stripe.growth : shared;
    growth.go_on(count);
    if (!is_told(stripe.added, count)) return;
    growth.go_on(Shard::Growth::kSteps);
    growth = shard.count(kPerTold);
    shared.go_on(Shard::Growth::kSteps);
  }
  void removed(Shard& shard, std::uint32_t count) {
    if (is_told(mine().removed, count)) static_cast<void>(shard.count(-kPerTold));
  }

 private:
  static constexpr std::uint32_t kWritesPerRound = 8;
  static constexpr std::size_t kRemovalsPerRound = 32;
  static constexpr std::uint32_t kChunksPerRound = 4;
  static constexpr std::int64_t kPerTold = Buckets::kStep;

  // A thread's own, but for those it shares its stripe with.
  struct alignas(128) Stripe {
    std::atomic<std::uint32_t> cursor{0};
    std::atomic<std::int64_t> added{0};
    std::atomic<std::int64_t> removed{0};
    Shard::Growth growth;  // of the thread that is alone in it
  };
  [[nodiscard]] Stripe& mine() { return stripes_[thread_stripe()]; }
  [[nodiscard]] std::size_t round(Time now);
  // Counts up to kPerTold; whether the shard is to hear of it.
  [[nodiscard]] static bool is_told(std::atomic<std::int64_t>& counter, std::uint32_t count) {
    const std::int64_t before = add_in_stripe<std::int64_t>(counter, count);
    return (before + count) / kPerTold != before / kPerTold;
  }
  struct Gone {
    std::size_t count = 0;
    bool met = false;  // another thread is at it too
  };
  // Of one chunk that is due.
  [[nodiscard]] Gone evict_chunk(std::uint32_t chunk, std::uint64_t when, Time now,
                                 std::size_t limit);

  Slab& slab_;
  const ShardOf& shard_of_;
  const Time birth_;
  std::array<Stripe, kStripes> stripes_;
};

}  // namespace idem::memory
