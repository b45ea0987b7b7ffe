// The slab: where a shard's records lie. Cells never move, have a 31-bit number, and their memory
// goes back to the system when a whole chunk of them is free.
//
// Layout. Chunks of 32 KiB, numbered from 0, in regions of doubling size that stay mapped. A chunk
// belongs to one size class while any of its cells is used, and to none when it is empty:
//
//   due[176]   one word per cell: free (with the next free cell), or when its record expires
//   cells      from byte 1408 on; number = chunk * 512 + 64-byte granule within the chunk
//
// Beside each region lie two words per chunk, which are never given back:
//
//   anchor     class | cells used | cells ever used (bump) | first free cell
//   due_min    a lower bound of the chunk's due words, and a count of its allocations
//
// The due words are the expiry calendar (sweep_chunk): they are dense, atomic, and mean the same
// whatever class the chunk has, so a sweep may read them while anything else happens. A wheel of
// links through the records would hold each replaced record back until its tick, twice the memory
// for every completed key; the calendar has no list to be taken off from. A chunk's records were
// made about the same time, so they tend to expire together, and due_min skips whole chunks.
//
// Invariants
//   1 A cell is free (in its chunk's free list, or beyond bump) or owned by one thread, linked in
//     one list, or in limbo. Every change is one CAS of the anchor, or a transfer by retire().
//   2 A cell's memory is written only by its owner, before it is linked.
//   3 A number once retired is free no earlier than two epochs later.
//
// Linearization. allocate: the CAS of the anchor that takes the cell. Freeing: the CAS that adds
// it. A chunk becomes empty in the same CAS that frees its last cell, so nobody can take a cell
// from it while its pages are dropped.
//
// ABA. A pop reads the first free cell i and its successor from due[i], then CASes the anchor. All
// cells are freed through limbo, so while the popping thread is pinned, i cannot be taken and freed
// again: if the anchor still has i first, i was first all the time and the successor is right.
//
// Reclamation. Four limbo stacks, tag modulo 4. A retiring thread is pinned when it reads its tag
// g and until it has pushed, so G is g or g + 1 then. A reclaiming thread is pinned when it reads
// G = g, so G <= g + 1 until it has detached a stack: of the tags that share stack (g + 2) % 4,
// only g - 2 and older can be in it, and those may be freed (epoch.hpp). Stacks are only pushed to
// and detached whole: no ABA.
//
// Progress. Lock-free: every retry means that another thread's CAS took. A thread frozen while it
// empties a chunk keeps that chunk; one frozen with a detached stack keeps those cells; nobody
// waits for either. Cost: O(1), and a look over the anchors (8 bytes per 32 KiB) when a chunk is
// used up.
#pragma once

#include <array>
#include <atomic>
#include <bit>
#include <cstddef>
#include <cstdint>

#include "cell.hpp"
#include "link.hpp"

namespace idem::memory {

inline constexpr std::size_t kChunkBytes = 32768;
inline constexpr std::uint32_t kChunkGranules = kChunkBytes / kGranuleBytes;
inline constexpr std::uint32_t kChunksMax = (Link::kNumberMax >> 9) + 1;

// What a due word tells of a used cell: when it expires, to the millisecond (rounded down), and
// where in the list to look for it.
struct Due {
  static constexpr std::uint64_t kNever = (std::uint64_t{1} << 42) - 1;
  // Milliseconds since the store's birth, plus one: 0 is "nothing".
  [[nodiscard]] static constexpr std::uint64_t code(Time at, Time birth) {
    const std::int64_t ms = (at - birth).count() / 1000;
    if (at <= birth) return 1;
    const auto code = static_cast<std::uint64_t>(ms) + 1;
    return code < kNever ? code : kNever;
  }
  // 21 bits are enough to find the bucket among two million; with more the walk is longer.
  [[nodiscard]] static constexpr std::uint32_t prefix_of(std::uint32_t order) {
    return order >> 11;
  }

  std::uint64_t when = 0;
  std::uint32_t prefix = 0;

  [[nodiscard]] std::uint32_t order_first() const { return prefix << 11; }
  [[nodiscard]] std::uint32_t order_last() const { return (prefix << 11) | 0x7FFU; }
};

class Slab {
 public:
  // What became of a record that looked expired.
  enum class Found { removed, kept };

  // chunks_max: a smaller limit than the numbers' own, for tests.
  explicit Slab(std::uint32_t chunks_max = kChunksMax) : chunks_max_(chunks_max) {}
  ~Slab();
  Slab(const Slab&) = delete;
  Slab& operator=(const Slab&) = delete;

  // A number whose cell the caller owns, memory undefined; 0: no numbers or no memory left.
  // All of these: only while pinned.
  [[nodiscard]] std::uint32_t allocate(std::uint32_t size_class);
  // Enters the cell in the calendar. Before it is linked, by its owner.
  void set_due(std::uint32_t number, std::uint32_t size_class, std::uint64_t when,
               std::uint32_t order);
  // The cell is reachable from no list: frees it, and its result, when no reader can hold it.
  void retire(std::uint32_t number);
  // Moves the epoch on if there is reason to, and frees what may be freed, about `limit` cells.
  void reclaim(std::size_t limit);
  [[nodiscard]] bool wants_reclaim() const {
    return limbo_cells_.load(std::memory_order_relaxed) >= kLimboWorthwhile;
  }

  [[nodiscard]] Cell& cell(std::uint32_t number) const {
    return *reinterpret_cast<Cell*>(chunk_data(number / kChunkGranules) +
                                    (number % kChunkGranules) * kGranuleBytes);
  }

  // Calls visit(number, Due) -> Found for each record of the chunk that may be expired at `when`,
  // until `stop()` is true. True if the chunk was gone through.
  template <class Visit, class Stop>
  bool sweep_chunk(std::uint32_t chunk, std::uint64_t when, Visit&& visit, Stop&& stop);
  [[nodiscard]] std::uint32_t chunks() const {
    return chunk_count_.load(std::memory_order_acquire);  // pairs with add_chunk
  }

  // A result outside its cell was made; the slab itself counts its end.
  void count_outside(std::int64_t bytes) {
    if (bytes != 0) outside_bytes_.fetch_add(bytes, std::memory_order_relaxed);  // a gauge
  }

  // Gauges; exact when nothing runs. limbo_cells: retired, and waiting for readers.
  [[nodiscard]] std::uint64_t limbo_cells() const;
  [[nodiscard]] std::uint64_t resident_bytes() const;

 private:
  static constexpr std::uint32_t kFirstGranule = 22;
  static constexpr std::uint32_t kDueWords = kFirstGranule * kGranuleBytes / 8;
  static constexpr std::uint32_t kNone = 511;  // no free cell
  static constexpr std::uint64_t kFree = std::uint64_t{1} << 63;
  static constexpr std::int64_t kLimboWorthwhile = 32;
  static constexpr std::uint32_t kFirstRegionChunks = 16;
  static constexpr std::uint32_t kRegions = 19;  // 16 * (2^19 - 1) > kChunksMax
  static constexpr std::uint32_t kClassEmptying = 15;

  // The anchor, taken apart.
  struct Anchor {
    std::uint32_t size_class = 0;  // 0: empty, kClassEmptying: its pages are being dropped
    std::uint32_t used = 0;
    std::uint32_t bump = 0;
    std::uint32_t free = kNone;
    bool warm = false;  // empty, but still has its pages

    [[nodiscard]] static Anchor of(std::uint64_t bits);
    [[nodiscard]] std::uint64_t bits() const;
    [[nodiscard]] bool has_room() const;
  };
  struct Meta {
    std::atomic<std::uint64_t> anchor;
    std::atomic<std::uint64_t> due_min;  // when (42 bits), allocations (22 bits)
  };

  [[nodiscard]] static constexpr std::uint32_t cells_of(std::uint32_t size_class) {
    return (kChunkGranules - kFirstGranule) / kClassGranules[size_class];
  }
  [[nodiscard]] static constexpr std::uint32_t number_of(std::uint32_t chunk,
                                                         std::uint32_t size_class,
                                                         std::uint32_t index) {
    return chunk * kChunkGranules + kFirstGranule + index * kClassGranules[size_class];
  }
  [[nodiscard]] static constexpr std::uint32_t index_of(std::uint32_t number,
                                                        std::uint32_t size_class) {
    return (number % kChunkGranules - kFirstGranule) / kClassGranules[size_class];
  }
  [[nodiscard]] static std::uint32_t region_of(std::uint32_t chunk) {
    return static_cast<std::uint32_t>(std::bit_width(chunk / kFirstRegionChunks + 1)) - 1;
  }
  [[nodiscard]] static std::uint32_t region_first(std::uint32_t region) {
    return kFirstRegionChunks * ((1U << region) - 1);
  }
  [[nodiscard]] static std::size_t region_meta_bytes(std::uint32_t region) {
    const std::size_t bytes = (std::size_t{kFirstRegionChunks} << region) * sizeof(Meta);
    return (bytes + 4095) & ~std::size_t{4095};  // whole pages, for the chunks behind it
  }
  [[nodiscard]] static std::size_t region_bytes(std::uint32_t region) {
    return region_meta_bytes(region) + (std::size_t{kFirstRegionChunks} << region) * kChunkBytes;
  }
  // acquire: pairs with the CAS in add_chunk that published the region
  [[nodiscard]] char* region_base(std::uint32_t region) const {
    return regions_[region].load(std::memory_order_acquire);
  }
  [[nodiscard]] char* chunk_data(std::uint32_t chunk) const {
    const std::uint32_t region = region_of(chunk);
    return region_base(region) + region_meta_bytes(region) +
           std::size_t{chunk - region_first(region)} * kChunkBytes;
  }
  [[nodiscard]] Meta& meta(std::uint32_t chunk) const {
    const std::uint32_t region = region_of(chunk);
    return reinterpret_cast<Meta*>(region_base(region))[chunk - region_first(region)];
  }
  [[nodiscard]] std::atomic<std::uint64_t>& due(std::uint32_t chunk, std::uint32_t index) const {
    return reinterpret_cast<std::atomic<std::uint64_t>*>(chunk_data(chunk))[index];
  }

  [[nodiscard]] std::uint32_t take(std::uint32_t chunk, std::uint32_t size_class);
  [[nodiscard]] std::uint32_t take_empty(std::uint32_t chunk, std::uint32_t size_class);
  [[nodiscard]] bool add_chunk();
  void free_cell(std::uint32_t number);
  void empty_chunk(std::uint32_t chunk);
  std::size_t free_chain(std::uint32_t head, std::size_t limit);

  const std::uint32_t chunks_max_;
  std::array<std::atomic<char*>, kRegions> regions_{};
  alignas(64) std::atomic<std::uint32_t> chunk_count_{0};
  std::array<std::atomic<std::uint32_t>, kClassLargest + 1> current_{};  // where to look first
  std::atomic<std::int64_t> warm_empty_{0};
  std::atomic<std::int64_t> resident_chunks_{0};
  alignas(64) std::array<std::atomic<std::uint32_t>, 4> limbo_{};
  std::atomic<std::uint32_t> ready_{0};  // a rest of a detached stack: may be freed at any time
  std::atomic<std::int64_t> limbo_cells_{0};
  std::atomic<std::int64_t> outside_bytes_{0};
};

template <class Visit, class Stop>
bool Slab::sweep_chunk(std::uint32_t chunk, std::uint64_t when, Visit&& visit, Stop&& stop) {
  Meta& m = meta(chunk);
  // acquire: pairs with set_due, so the due words of the allocations counted here are seen
  std::uint64_t bound = m.due_min.load(std::memory_order_acquire);
  if (bound >> 22 == 0 || bound >> 22 > when) return true;
  const std::uint32_t size_class = Anchor::of(m.anchor.load(std::memory_order_acquire)).size_class;
  // Empty, or about to be: the bound is stale, and the allocation that revives it will lower it.
  const std::uint32_t cells =
      size_class == 0 || size_class == kClassEmptying ? 0 : cells_of(size_class);
  std::uint64_t earliest = Due::kNever + 1;
  for (std::uint32_t index = 0; index < cells; ++index) {
    const std::uint64_t word = due(chunk, index).load(std::memory_order_relaxed);  // a hint
    if (word == 0 || (word & kFree) != 0) continue;
    const Due found{word & Due::kNever, static_cast<std::uint32_t>(word >> 42) & 0x1FFFFFU};
    if (found.when <= when) {
      if (stop()) return false;
      if (visit(number_of(chunk, size_class, index), found) == Found::removed) continue;
    }
    if (found.when < earliest) earliest = found.when;
  }
  // Raise the bound, unless a record came meanwhile: the count in the word tells. It cannot have
  // gone round while this thread is pinned, since cells freed now are not used again before.
  // release: pairs with nothing new, keeps the sequence of set_due's CASes
  const std::uint64_t raised = (earliest > Due::kNever ? 0 : earliest << 22) | (bound & 0x3FFFFFU);
  m.due_min.compare_exchange_strong(bound, raised, std::memory_order_acq_rel);
  return true;
}

}  // namespace idem::memory
