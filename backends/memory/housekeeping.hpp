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
#include "slab.hpp"

namespace idem::memory {

class Shard;

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
  // thread's, and counts it as 16.
  void added(Shard& shard, std::int64_t count) { tell(mine().added, shard, count, 1); }
  void removed(Shard& shard, std::int64_t count) { tell(mine().removed, shard, count, -1); }

 private:
  static constexpr std::uint32_t kWritesPerRound = 8;
  static constexpr std::size_t kRemovalsPerRound = 32;
  static constexpr std::uint32_t kChunksPerRound = 4;
  static constexpr std::int64_t kPerTold = 16;

  // A thread's own, but for those it shares its stripe with.
  struct alignas(128) Stripe {
    std::atomic<std::uint32_t> cursor{0};
    std::atomic<std::int64_t> added{0};
    std::atomic<std::int64_t> removed{0};
  };
  [[nodiscard]] Stripe& mine() { return stripes_[thread_stripe()]; }
  [[nodiscard]] std::size_t round(Time now);
  static void tell(std::atomic<std::int64_t>& counter, Shard& shard, std::int64_t count,
                   std::int64_t sign);
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
