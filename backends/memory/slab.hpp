// The slab: where a store's records lie. Cells never move, have a 31-bit number, and their memory
// goes back to the system when a whole chunk of them is free.
//
// Layout. Chunks of 32 KiB, numbered from 0, in regions of 32 MiB that stay mapped. A chunk
// belongs to one size class while any of its cells is used, and to none when it is empty:
//
//   due[240]   one word per cell: free (with the next free cell), in limbo (with the next one
//              there), taken, or when its record expires
//   cells      from byte 1920 on; number = chunk * 512 + 64-byte granule within the chunk
//
// Beside each region lies a line per chunk, which is never given back:
//
//   anchor     class | cells used | cells ever used (bump) | first free cell | place
//   due_min    a lower bound of the chunk's due words, and a count of the times cells were taken
//   below      the next chunk, while it is in a pile
//
// A stripe (epoch.hpp) has a current chunk of each class, so threads write side by side only where
// they free each other's cells, and each writes its records one after the other. A thread that is
// alone in its stripe takes a run of cells at once, in one step of the anchor; before that it uses
// its spares, a few cells of each class that came out of its own limbo and never went back to their
// chunks. A chunk that is used up stands nowhere until a quarter of it is free again; then it goes
// onto the pile of its class. Empty chunks have a pile of their own. The place in the anchor tells
// which it is.
//
// The due words are the expiry calendar (sweep_chunk): dense, atomic, and of the same meaning
// whatever class the chunk has, so a sweep may read them while anything else happens. A wheel of
// links through the records would hold each replaced record back until its tick, twice the memory
// for every completed key; the calendar has no list to be taken off from. A chunk's records were
// made about the same time, so they tend to expire together, and due_min skips whole chunks.
//
// Invariants
//   1 A cell is free (in its chunk's free list, or beyond bump) or owned by one thread, linked in
//     one list, or in limbo. Every change is one CAS of the anchor, or a transfer by retire(), or
//     the end of its time in limbo: then it belongs to who detached it, who frees it or keeps it
//     among his spares.
//   2 A cell's memory is written only by its owner, before it is linked; then its due word, with
//     release. Who finds a due word that tells a time, pinned, may read the cell: it is used again
//     no sooner than that pin ends (3), and if it was used again before, that has happened before
//     the pin, and the due word says so.
//   3 A number once retired is free no earlier than two epochs later.
//   4 Nothing due is missed: due_min is 0 or above a due word only for as long as the thread that
//     wrote the word has not lowered it yet. Taking cells marks them as taken and then counts, in
//     due_min; a due word written later is compared with due_min. Who raises due_min read it before
//     the due words, and his CAS fails if cells were taken, or it was lowered, since. Else each
//     cell taken before was, when he read its word, still taken, and he raises to the next
//     millisecond at most, so its word is read again; or told its time, which he kept below. And
//     what he raised to before the cells were taken is what the thread compares its due words with.
//     A spare is used without being counted: it comes out of limbo, and he raises to the next
//     millisecond at most for a word in limbo too (unless it says that the cell goes home). If he
//     read an older word, of a record that was linked, the cell was retired after he was pinned,
//     and is no spare before he is not.
//   5 A chunk is in at most one pile, or the current one of at most one stripe: `place` changes
//     from `none` by the CAS that lists it, and back by who took it from there.
//
// Linearization. allocate: the CAS of the anchor that takes the cell. Freeing: the CAS that adds
// it. A chunk becomes empty in the same CAS that frees its last cell, so nobody can take a cell
// from it while its pages are dropped.
//
// ABA. A pop reads the first free cell i and its successor from due[i], then CASes the anchor. All
// cells are freed through limbo, so while the popping thread is pinned, i cannot be taken and freed
// again: if the anchor still has i first, i was first all the time and the successor is right.
// A pile's top carries a count of its changes.
//
// Reclamation. Each stripe has four limbo stacks, tag modulo 4. A retiring thread is pinned when it
// reads its tag g and until it has pushed, so G is g or g + 1 then. A reclaiming thread is pinned
// when it reads G = g, so G <= g + 1 until it has detached a stack: of the tags that share stack
// (g + 2) % 4, only g - 2 and older can be in it, and those may be freed (epoch.hpp). Stacks are
// only pushed to and detached whole: no ABA. Any thread may free any stripe's limbo, and each
// housekeeping looks at a foreign one too: what a thread left behind goes away. Its spares, at most
// kSparesMost of a class, are used by whoever sits there next, or freed by a sweep.
// What a sweep or an expiry frees goes home to its chunk; what was replaced or removed is used
// again by the thread that did it. An advance costs a system call that interrupts every other
// thread, up to 13 us here: a thread tries one in kRetiredPerTry retirements, so its limbo holds
// two to four times as many cells.
//
// Progress. Lock-free: every retry means that another thread's CAS took. A thread frozen while it
// moves or empties a chunk keeps that chunk; one frozen with a detached stack keeps those cells;
// nobody waits for either. Cost: O(1).
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>

#include "cell.hpp"
#include "epoch.hpp"
#include "idem/pause_point.hpp"
#include "link.hpp"

namespace idem::memory {

inline constexpr std::size_t kChunkBytes = 32768;
inline constexpr std::uint32_t kChunkGranules = kChunkBytes / kGranuleBytes;
inline constexpr std::uint32_t kChunksMax = (Link::kNumberMax >> 9) + 1;

// When a record expires, as its due word tells it: to the millisecond, rounded down.
struct Due {
  static constexpr std::uint64_t kNever = (std::uint64_t{1} << 42) - 1;
  // Milliseconds since the store's birth, plus one: 0 is "nothing".
  [[nodiscard]] static constexpr std::uint64_t code(Time at, Time birth) {
    const std::int64_t ms = (at - birth).count() / 1000;
    if (at <= birth) return 1;
    const auto code = static_cast<std::uint64_t>(ms) + 1;
    return code < kNever ? code : kNever;
  }
};

class Slab {
 public:
  // chunks_max: a smaller limit than the numbers' own, for tests.
  explicit Slab(std::uint32_t chunks_max = kChunksMax) : chunks_max_(chunks_max) {}
  ~Slab();
  Slab(const Slab&) = delete;
  Slab& operator=(const Slab&) = delete;

  // A number whose cell the caller owns, memory undefined; 0: no numbers or no memory left.
  // All of these: only while pinned.
  [[nodiscard]] std::uint32_t allocate(std::uint32_t size_class) {
    const epoch::Slot& seat = epoch::seat_taken();
    Stripe& stripe = stripes_[seat.stripe];
    if (!seat.alone) [[unlikely]]
      return take_run(stripe, size_class, 1).next;
    Spares& spares = stripe.spares[size_class];
    if (spares.first != 0) {
      const std::uint32_t number = spares.first;
      --spares.count;
      // relaxed: this thread's own
      spares.first =
          static_cast<std::uint32_t>(due_of(number, size_class).load(std::memory_order_relaxed));
      return number;
    }
    Run& run = stripe.runs[size_class];
    if (run.left == 0) [[unlikely]]
      run = take_run(stripe, size_class, kRunCells);
    if (run.left == 0) [[unlikely]]
      return 0;
    const std::uint32_t number = run.next;
    --run.left;
    run.next += kClassGranules[size_class];
    return number;
  }
  // Enters the cell in the calendar. When it is made, before it is linked, by its owner.
  void set_due(std::uint32_t number, std::uint32_t size_class, std::uint64_t when) {
    const std::uint32_t chunk = number / kChunkGranules;
    const std::uintptr_t origin = origin_of(chunk);
    IDEM_PAUSE_POINT("memory.slab.due");
    // release: pairs with find_due, whose caller reads the cell
    due_at(origin, chunk, index_of(number, size_class)).store(when, std::memory_order_release);
    // relaxed: not older than what this thread counted in it
    const std::uint64_t bound =
        meta_at(origin, chunk).due_min.load(std::memory_order_relaxed) >> kCountBits;
    if (bound == 0 || when < bound) [[unlikely]]
      lower_bound(chunk, when);
  }
  // The cell is reachable from no list: frees it, and its result, when no reader can hold it; to be
  // used again by this thread.
  void retire(std::uint32_t number) {
    const Cell& dead = cell(number);
    const Buried one = buried(number, dead.size_class());
    push_limbo(one, 1, due_of(one), kLimbo | outside_flag(dead));
  }
  // A cell in limbo: its number and, above it, its class, so that nobody need look at the cell. 0:
  // none.
  using Buried = std::uint64_t;
  // Cells that are retired in one step, and go back to their chunks.
  struct Chain {
    Buried first = 0;
    Buried last = 0;
    std::uint32_t count = 0;
  };
  void retire_later(Chain& chain, std::uint32_t number) {
    const Cell& dead = cell(number);
    const Buried one = buried(number, dead.size_class());
    // relaxed: by the CAS in push_limbo
    due_of(one).store(kLimbo | kHome | outside_flag(dead) | chain.first, std::memory_order_relaxed);
    if (chain.count++ == 0) chain.last = one;
    chain.first = one;
  }
  void retire(Chain& chain);
  // After some writes of the calling thread: moves the epoch on if there is reason to, fills the
  // thread's spares, and frees what is too much, about `limit` cells; of its stripe and another.
  void reclaim(std::size_t limit);
  void reclaim_everywhere(std::size_t limit);  // per stripe; the thread's spares too
  void trim();  // gives the pages of empty chunks back, but for a few

  [[nodiscard]] Cell& cell(std::uint32_t number) const {
    return *reinterpret_cast<Cell*>(cell_at(number));
  }
  [[nodiscard]] char* cell_at(std::uint32_t number) const {
    return reinterpret_cast<char*>(origin_of(number / kChunkGranules) +
                                   std::uintptr_t{number} * kGranuleBytes);
  }

  // The records of the chunk that may be expired at `when`, as many as there is room for, from that
  // index on; how many. Moves the index on, or to kNoIndex when the chunk was gone through.
  std::size_t find_due(std::uint32_t chunk, std::uint64_t when, std::uint32_t& index,
                       std::span<std::uint32_t> numbers) const;
  static constexpr std::uint32_t kNoIndex = ~0U;
  // The chunk's bound: to be read before find_due, looked at with is_due, and raised when what was
  // due is gone. A record that came meanwhile keeps it as it was.
  [[nodiscard]] std::uint64_t due_bound(std::uint32_t chunk) const {
    // acquire: pairs with set_due, so the due words of the allocations counted here are seen
    return meta(chunk).due_min.load(std::memory_order_acquire);
  }
  [[nodiscard]] static bool is_due(std::uint64_t bound, std::uint64_t when) {
    return bound >> kCountBits != 0 && bound >> kCountBits <= when;
  }
  void raise_bound(std::uint32_t chunk, std::uint64_t bound, std::uint64_t when);

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
  // Instead of a division: exact for less than 512 granules.
  static constexpr std::array<std::uint32_t, kClassLargest + 1> kInverse{0,     32768, 21846, 16384,
                                                                         13108, 10923, 8192};
  static constexpr std::uint32_t kFirstGranule = 30;
  static constexpr std::uint32_t kDueWords = kFirstGranule * kGranuleBytes / 8;
  static constexpr std::uint32_t kNone = 511;  // no free cell
  static constexpr std::uint64_t kFree = std::uint64_t{1} << 63;
  // In limbo; with it whether the result lies outside, and the Buried that is next there.
  static constexpr std::uint64_t kLimbo = std::uint64_t{1} << 62;
  static constexpr std::uint64_t kHome = std::uint64_t{1} << 60;  // goes back to its chunk
  static constexpr std::uint64_t kHasOutside = std::uint64_t{1} << 59;
  static constexpr std::uint64_t kBuriedMask = (std::uint64_t{1} << 35) - 1;
  static constexpr std::uint64_t kTaken = std::uint64_t{1} << 61;  // and not linked yet
  static constexpr std::uint32_t kRunCells = 16;
  static constexpr std::uint32_t kSparesMost = 64;  // of a class
  static constexpr std::uint32_t kSparesLow = 32;   // of all classes
  static constexpr std::int64_t kRetiredPerTry = 512;
  static constexpr std::int64_t kLimboMost = 2048;  // more is freed, though it may be used soon
  static constexpr std::uint32_t kRegionChunks = 1024;
  static constexpr std::uint32_t kRegions = kChunksMax / kRegionChunks;
  static constexpr std::uint32_t kClassEmptying = 15;

  static constexpr unsigned kCountBits = 22;
  static constexpr std::uint64_t kCountMask = (std::uint64_t{1} << kCountBits) - 1;

  // Where a chunk is to be found.
  enum class Place : std::uint32_t { none, listed, current };

  // The anchor, taken apart.
  struct Anchor {
    std::uint32_t size_class = 0;  // 0: empty, kClassEmptying: its pages are being dropped
    std::uint32_t used = 0;
    std::uint32_t bump = 0;
    std::uint32_t free = kNone;
    bool warm = false;  // empty, but still has its pages
    Place place = Place::none;

    [[nodiscard]] static Anchor of(std::uint64_t bits);
    [[nodiscard]] std::uint64_t bits() const;
    [[nodiscard]] bool has_room() const;
  };
  struct alignas(64) Meta {
    std::atomic<std::uint64_t> anchor;
    std::atomic<std::uint64_t> due_min;  // when (42 bits), count (kCountBits)
    std::atomic<std::uint32_t> below;
  };
  static constexpr std::size_t kRegionMetaBytes = kRegionChunks * sizeof(Meta);
  static constexpr std::size_t kRegionBytes = kRegionMetaBytes + kRegionChunks * kChunkBytes;
  // Chunks to be taken from: top chunk + 1, and a count of changes above it.
  struct alignas(64) Pile {
    std::atomic<std::uint64_t> top{0};
  };
  // Cells of one chunk that lie one behind the other, owned by who took them.
  struct Run {
    std::uint32_t next = 0;
    std::uint32_t left = 0;
  };
  // Cells that are owned too, the due word of each telling the next: taken, as far as others know.
  struct Spares {
    std::uint32_t first = 0;
    std::uint32_t count = 0;
  };
  struct alignas(128) Stripe {
    // Of the thread that is alone in it:
    std::array<Spares, kClassLargest + 1> spares{};
    std::array<Run, kClassLargest + 1> runs{};
    std::int64_t tried = 0;         // `retired` when it last looked for what may be freed
    std::uint64_t tried_epoch = 0;  // and the epoch after it

    std::array<std::atomic<std::uint32_t>, kClassLargest + 1> current{};  // chunk + 1
    std::array<std::atomic<Buried>, 4> limbo{};
    std::atomic<Buried> ready{0};        // a rest of a detached stack: may be freed at any time
    std::atomic<std::uint32_t> turn{0};  // which foreign stripe is looked at next
    std::atomic<std::int64_t> retired{0};
    std::atomic<std::int64_t> freed{0};  // or become spares

    [[nodiscard]] std::int64_t limbo_cells() const {  // a gauge
      return retired.load(std::memory_order_relaxed) - freed.load(std::memory_order_relaxed);
    }
    [[nodiscard]] std::uint32_t spare_cells() const {
      std::uint32_t sum = 0;
      for (const Spares& of : spares) sum += of.count;
      return sum;
    }
  };

  [[nodiscard]] static constexpr std::uint32_t cells_of(std::uint32_t size_class) {
    const std::uint32_t room = (kChunkGranules - kFirstGranule) / kClassGranules[size_class];
    return room < kDueWords ? room : kDueWords;
  }
  [[nodiscard]] static constexpr std::uint32_t number_of(std::uint32_t chunk,
                                                         std::uint32_t size_class,
                                                         std::uint32_t index) {
    return chunk * kChunkGranules + kFirstGranule + index * kClassGranules[size_class];
  }
  [[nodiscard]] static std::uint32_t index_of(std::uint32_t number, std::uint32_t size_class) {
    return (number % kChunkGranules - kFirstGranule) * kInverse[size_class] >> 16;
  }
  [[nodiscard]] char* chunk_data(std::uint32_t chunk) const {
    return cell_at(chunk * kChunkGranules);
  }
  // Where cell 0 would be if it were in the chunk's region.
  [[nodiscard]] std::uintptr_t origin_of(std::uint32_t chunk) const {
    // acquire: pairs with the CAS in add_chunk
    return regions_[chunk / kRegionChunks].load(std::memory_order_acquire);
  }
  [[nodiscard]] static Meta& meta_at(std::uintptr_t origin, std::uint32_t chunk) {
    const std::uint32_t within = chunk % kRegionChunks;
    return *reinterpret_cast<Meta*>(origin + std::uintptr_t{chunk - within} * kChunkBytes -
                                    kRegionMetaBytes + within * sizeof(Meta));
  }
  [[nodiscard]] Meta& meta(std::uint32_t chunk) const { return meta_at(origin_of(chunk), chunk); }
  [[nodiscard]] static std::atomic<std::uint64_t>& due_at(std::uintptr_t origin,
                                                          std::uint32_t chunk,
                                                          std::uint32_t index) {
    return reinterpret_cast<std::atomic<std::uint64_t>*>(origin + std::uintptr_t{chunk} *
                                                                      kChunkBytes)[index];
  }
  [[nodiscard]] std::atomic<std::uint64_t>& due(std::uint32_t chunk, std::uint32_t index) const {
    return due_at(origin_of(chunk), chunk, index);
  }
  [[nodiscard]] std::atomic<std::uint64_t>& due_of(std::uint32_t number,
                                                   std::uint32_t size_class) const {
    return due(number / kChunkGranules, index_of(number, size_class));
  }
  [[nodiscard]] static Buried buried(std::uint32_t number, std::uint32_t size_class) {
    return number | Buried{size_class} << 32;
  }
  [[nodiscard]] static std::uint32_t number_in(Buried cell) {
    return static_cast<std::uint32_t>(cell);
  }
  [[nodiscard]] static std::uint32_t class_in(Buried cell) {
    return static_cast<std::uint32_t>(cell >> 32);
  }
  [[nodiscard]] std::atomic<std::uint64_t>& due_of(Buried cell) const {
    return due_of(number_in(cell), class_in(cell));
  }
  [[nodiscard]] static std::uint64_t outside_flag(const Cell& dead) {
    return dead.outside() != nullptr ? kHasOutside : 0;
  }
  void push_limbo(Buried first, std::int64_t count, std::atomic<std::uint64_t>& last,
                  std::uint64_t what);

  [[nodiscard]] Run take_run(Stripe& stripe, std::uint32_t size_class, std::uint32_t most);
  [[nodiscard]] Run take(std::uint32_t chunk, std::uint32_t size_class, std::uint32_t most);
  void mark_taken(std::uint32_t chunk, std::uint32_t size_class, const Run& run);
  void lower_bound(std::uint32_t chunk, std::uint64_t when);
  void put_away(std::uint32_t chunk, std::uint32_t size_class);
  [[nodiscard]] bool find_chunk(std::atomic<std::uint32_t>& current, std::uint32_t size_class);
  [[nodiscard]] bool adopt(std::uint32_t chunk, std::uint32_t size_class);
  void push(Pile& pile, std::uint32_t chunk);
  [[nodiscard]] std::uint32_t pop(Pile& pile);  // chunk + 1; 0: none
  [[nodiscard]] std::uint32_t find_empty();
  [[nodiscard]] std::uint32_t add_chunk();  // chunk + 1; 0: none, or no memory
  void keep_region(void* base);
  // Cells of one chunk, linked by their due words: the indices of the first and the last.
  struct Bundle {
    std::uint32_t chunk = 0;
    std::uint32_t size_class = 0;
    std::uint32_t first = kNone;
    std::uint32_t last = kNone;
    std::uint32_t count = 0;
  };
  void free_outside(const Cell& dead);
  void put(Bundle& bundle, std::uint32_t number, std::uint32_t size_class);
  void give_back(Bundle& bundle);
  void give_back_spares(Stripe& stripe);
  void empty_chunk(std::uint32_t chunk);
  // What becomes of cells that leave limbo. to_use: the calling thread's spares, until they are
  // full, and no further. freed: free.
  enum class Fate { to_use, use_or_freed, freed };
  void reclaim_mine(Stripe& stripe, std::size_t limit);
  std::size_t reclaim(Stripe& stripe, std::size_t limit, Fate fate);
  std::size_t reclaim_ready(Stripe& stripe, std::size_t limit, Fate fate);
  std::size_t reclaim_oldest(Stripe& stripe, std::size_t limit, Fate fate);
  std::size_t disperse(Stripe& stripe, Buried head, std::size_t limit, Fate fate);

  // Of each region: where cell 0 would be if it were in it; 0: it is not there. The lines of its
  // chunks come before them.
  std::array<std::atomic<std::uintptr_t>, kRegions> regions_{};
  const std::uint32_t chunks_max_;
  std::atomic<void*> spare_region_{nullptr};  // mapped, untouched, in no place yet
  alignas(64) std::atomic<std::uint32_t> chunk_count_{0};
  std::atomic<std::int64_t> warm_empty_{0};
  std::atomic<std::int64_t> resident_chunks_{0};
  std::atomic<std::int64_t> outside_bytes_{0};
  std::array<Pile, kClassLargest + 1> piles_;  // by class; 0: empty chunks
  mutable std::array<Stripe, kStripes> stripes_;
};

inline void Slab::retire(Chain& chain) {
  if (chain.count == 0) return;
  std::atomic<std::uint64_t>& word = due_of(chain.last);
  push_limbo(chain.first, chain.count, word, word.load(std::memory_order_relaxed));
  chain = {};
}

// Cells from `first` to the one whose due word is `last`, which tells `what` and no other yet.
inline void Slab::push_limbo(Buried first, std::int64_t count, std::atomic<std::uint64_t>& last,
                             std::uint64_t what) {
  Stripe& stripe = stripes_[thread_stripe()];
  std::atomic<Buried>& stack = stripe.limbo[current_epoch() & 3];
  IDEM_PAUSE_POINT("memory.reclaim.retire");
  Buried below = stack.load(std::memory_order_relaxed);
  do {
    last.store(what | below, std::memory_order_relaxed);  // by the CAS
    // release: pairs with the exchange in reclaim_oldest
  } while (!stack.compare_exchange_weak(below, first, std::memory_order_acq_rel));
  add_in_stripe(stripe.retired, count);
}

}  // namespace idem::memory
