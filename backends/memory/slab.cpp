#include "slab.hpp"

#include <algorithm>
#include <cstdlib>

#include "idem/pause_point.hpp"
#include "pages.hpp"

namespace idem::memory {
namespace {

// Empty chunks that keep their pages, so that a store whose records come and go does not ask the
// system each time: a few, and a sixteenth of what is in use.
constexpr std::int64_t kWarmLeast = 4;
[[nodiscard]] std::int64_t warm_most(std::int64_t resident) { return kWarmLeast + resident / 16; }

}  // namespace

Slab::Anchor Slab::Anchor::of(std::uint64_t bits) {
  Anchor a;
  a.size_class = static_cast<std::uint32_t>(bits & 15);
  a.used = static_cast<std::uint32_t>(bits >> 4 & 511);
  a.bump = static_cast<std::uint32_t>(bits >> 13 & 511);
  a.free = kNone - static_cast<std::uint32_t>(bits >> 22 & 511);  // so that 0 is an unused chunk
  a.warm = (bits >> 31 & 1) != 0;
  a.place = static_cast<Place>(bits >> 32 & 3);
  return a;
}

std::uint64_t Slab::Anchor::bits() const {
  return std::uint64_t{size_class} | std::uint64_t{used} << 4 | std::uint64_t{bump} << 13 |
         std::uint64_t{kNone - free} << 22 | std::uint64_t{warm} << 31 |
         static_cast<std::uint64_t>(place) << 32;
}

bool Slab::Anchor::has_room() const { return free != kNone || bump < cells_of(size_class); }

Slab::~Slab() {
  for (std::uint32_t chunk = 0; chunk < chunks(); ++chunk) {
    const Anchor a = Anchor::of(meta(chunk).anchor.load());
    for (std::uint32_t index = 0; index < a.bump && a.size_class != 0; ++index)
      if ((due(chunk, index).load() & (kFree | kTaken)) == 0)
        std::free(cell(number_of(chunk, a.size_class, index)).outside());
  }
  for (std::uint32_t region = 0; region < kRegions; ++region)
    if (regions_[region].load() != 0) unmap_pages(&meta(region * kRegionChunks), kRegionBytes);
  if (void* const spare = spare_region_.load()) unmap_pages(spare, kRegionBytes);
}

// --- chunks ------------------------------------------------------------------------------------

void Slab::push(Pile& pile, std::uint32_t chunk) {
  IDEM_PAUSE_POINT("memory.slab.list");
  std::uint64_t seen = pile.top.load(std::memory_order_relaxed);
  for (;;) {
    meta(chunk).below.store(static_cast<std::uint32_t>(seen), std::memory_order_relaxed);
    const std::uint64_t count = (seen >> 32) + 1;
    // release: pairs with pop
    if (pile.top.compare_exchange_weak(seen, count << 32 | (chunk + 1), std::memory_order_acq_rel))
      return;
  }
}

std::uint32_t Slab::pop(Pile& pile) {
  std::uint64_t seen = pile.top.load(std::memory_order_acquire);  // pairs with push
  for (;;) {
    const auto top = static_cast<std::uint32_t>(seen);
    if (top == 0) return 0;
    // relaxed: if it is not the right one, the count in the top has changed
    const std::uint32_t below = meta(top - 1).below.load(std::memory_order_relaxed);
    const std::uint64_t count = (seen >> 32) + 1;
    if (pile.top.compare_exchange_weak(seen, count << 32 | below, std::memory_order_acq_rel,
                                       std::memory_order_acquire))
      return top;
  }
}

std::uint32_t Slab::add_chunk() {
  for (std::uint32_t total = chunks(); total < chunks_max_;) {
    std::atomic<std::uintptr_t>& region = regions_[total / kRegionChunks];
    std::uintptr_t origin = region.load(std::memory_order_acquire);
    if (origin == 0) {
      // acquire: pairs with keep_region
      void* base = spare_region_.exchange(nullptr, std::memory_order_acquire);
      if (base == nullptr) base = map_pages(kRegionBytes);
      if (base == nullptr) return 0;
      IDEM_PAUSE_POINT("memory.grow.slab");
      const std::uintptr_t mine = reinterpret_cast<std::uintptr_t>(base) + kRegionMetaBytes -
                                  std::uintptr_t{total - total % kRegionChunks} * kChunkBytes;
      // release: pairs with cell_at
      if (!region.compare_exchange_strong(origin, mine, std::memory_order_acq_rel))
        keep_region(base);
    }
    // release: pairs with chunks(): whoever counts the chunk finds its region
    if (chunk_count_.compare_exchange_strong(total, total + 1, std::memory_order_acq_rel))
      return total + 1;
  }
  return 0;
}

// An untouched region that another thread was faster with is the next one: to unmap it would be a
// stop inside a claim.
void Slab::keep_region(void* base) {
  void* none = nullptr;
  // release: pairs with the exchange in add_chunk
  if (!spare_region_.compare_exchange_strong(none, base, std::memory_order_release,
                                             std::memory_order_relaxed))
    unmap_pages(base, kRegionBytes);
}

// Makes a chunk that is in no pile any more the current one of a stripe. False: its pages are being
// dropped; who does that will list it.
bool Slab::adopt(std::uint32_t chunk, std::uint32_t size_class) {
  std::atomic<std::uint64_t>& anchor = meta(chunk).anchor;
  std::uint64_t seen = anchor.load(std::memory_order_acquire);  // pairs with empty_chunk
  for (;;) {
    Anchor a = Anchor::of(seen);
    const bool emptying = a.size_class == kClassEmptying;
    const bool empty = a.size_class == 0;
    const bool was_warm = a.warm;
    a.place = emptying ? Place::none : Place::current;
    if (empty) {
      a.size_class = size_class;
      a.warm = false;
    }
    if (!anchor.compare_exchange_weak(seen, a.bits(), std::memory_order_acq_rel,
                                      std::memory_order_acquire))
      continue;
    if (empty && was_warm) warm_empty_.fetch_sub(1, std::memory_order_relaxed);
    if (empty && !was_warm) resident_chunks_.fetch_add(1, std::memory_order_relaxed);
    return !emptying;
  }
}

// The last resort: a chunk that became empty in the pile of another class. Slow, but only at the
// end of the numbers or of memory. chunk + 1; 0: none.
std::uint32_t Slab::find_empty() {
  std::uint32_t found = 0;
  for (std::size_t at = 1; at < piles_.size() && found == 0; ++at) {
    std::uint32_t popped = 0;  // a chain of its own, through `below`
    while (const std::uint32_t chunk = pop(piles_[at])) {
      // relaxed: adopt() looks again
      if (Anchor::of(meta(chunk - 1).anchor.load(std::memory_order_relaxed)).size_class == 0) {
        found = chunk;
        break;
      }
      meta(chunk - 1).below.store(popped, std::memory_order_relaxed);
      popped = chunk;
    }
    while (popped != 0) {
      const std::uint32_t chunk = popped;
      popped = meta(chunk - 1).below.load(std::memory_order_relaxed);
      push(piles_[at], chunk - 1);
    }
  }
  return found;
}

// After it `current` names a chunk with room, if anybody found one. False: none is left.
bool Slab::find_chunk(std::atomic<std::uint32_t>& current, std::uint32_t size_class) {
  std::uint32_t found = 0;
  while (found == 0) {
    found = pop(piles_[size_class]);
    if (found == 0) found = pop(piles_[0]);
    if (found == 0) found = add_chunk();
    if (found == 0) found = find_empty();
    if (found == 0) return false;
    if (!adopt(found - 1, size_class)) found = 0;
  }
  IDEM_PAUSE_POINT("memory.slab.adopt");
  std::uint32_t none = 0;
  // release: pairs with allocate
  if (!current.compare_exchange_strong(none, found, std::memory_order_acq_rel))
    put_away(found - 1, size_class);  // another thread of the stripe was faster
  return true;
}

// A chunk that is the stripe's no more, or did not become it: listed if it has room, else left
// alone until it has.
void Slab::put_away(std::uint32_t chunk, std::uint32_t size_class) {
  std::atomic<std::uint64_t>& anchor = meta(chunk).anchor;
  std::uint64_t seen = anchor.load(std::memory_order_relaxed);
  for (;;) {
    Anchor a = Anchor::of(seen);
    const bool empty = a.used == 0;
    const bool room = a.has_room();
    a.place = room && !empty ? Place::listed : Place::none;
    if (empty) a.size_class = kClassEmptying;
    if (!anchor.compare_exchange_weak(seen, a.bits(), std::memory_order_acq_rel)) continue;
    if (empty)
      empty_chunk(chunk);
    else if (room)
      push(piles_[size_class], chunk);
    return;
  }
}

// The chunk's last cell went, and it is nobody's current one: it is this thread's alone.
void Slab::empty_chunk(std::uint32_t chunk) {
  const std::int64_t most = warm_most(resident_chunks_.load(std::memory_order_relaxed));
  const bool warm = warm_empty_.fetch_add(1, std::memory_order_relaxed) < most;
  if (!warm) {
    warm_empty_.fetch_sub(1, std::memory_order_relaxed);
    IDEM_PAUSE_POINT("memory.slab.drop");
    drop_pages(chunk_data(chunk), kChunkBytes);
    resident_chunks_.fetch_sub(1, std::memory_order_relaxed);
  }
  std::atomic<std::uint64_t>& anchor = meta(chunk).anchor;
  std::uint64_t seen = anchor.load(std::memory_order_relaxed);
  for (;;) {
    Anchor a;
    a.warm = warm;
    a.place = Place::listed;
    const bool listed = Anchor::of(seen).place == Place::listed;
    // release: pairs with adopt
    if (!anchor.compare_exchange_weak(seen, a.bits(), std::memory_order_acq_rel)) continue;
    if (!listed) push(piles_[0], chunk);
    return;
  }
}

void Slab::trim() {
  for (Pile& pile : piles_) {
    std::uint32_t popped = 0;  // a chain of its own, through `below`
    while (warm_empty_.load(std::memory_order_relaxed) > kWarmLeast) {
      const std::uint32_t chunk = pop(pile);
      if (chunk == 0) break;
      Meta& m = meta(chunk - 1);
      Anchor a = Anchor::of(m.anchor.load(std::memory_order_acquire));  // pairs with empty_chunk
      if (a.size_class == 0 && a.warm) {
        drop_pages(chunk_data(chunk - 1), kChunkBytes);
        warm_empty_.fetch_sub(1, std::memory_order_relaxed);
        resident_chunks_.fetch_sub(1, std::memory_order_relaxed);
        a.warm = false;
        m.anchor.store(a.bits(), std::memory_order_release);  // pairs with adopt
      }
      m.below.store(popped, std::memory_order_relaxed);
      popped = chunk;
    }
    while (popped != 0) {
      const std::uint32_t chunk = popped;
      popped = meta(chunk - 1).below.load(std::memory_order_relaxed);
      // Emptied in the pile of its class: from now on any class may have it.
      const Anchor a = Anchor::of(meta(chunk - 1).anchor.load(std::memory_order_relaxed));
      push(a.size_class == 0 ? piles_[0] : pile, chunk - 1);
    }
  }
}

// --- cells -------------------------------------------------------------------------------------

Slab::Run Slab::take_run(Stripe& stripe, std::uint32_t size_class, std::uint32_t most) {
  std::atomic<std::uint32_t>& current = stripe.current[size_class];
  for (;;) {
    std::uint32_t chunk = current.load(std::memory_order_acquire);  // pairs with find_chunk
    if (chunk != 0) {
      const Run run = take(chunk - 1, size_class, most);
      if (run.left != 0) {
        mark_taken(chunk - 1, size_class, run);
        return run;
      }
      const std::uint32_t used_up = chunk - 1;
      if (current.compare_exchange_strong(chunk, 0, std::memory_order_acq_rel))
        put_away(used_up, size_class);
    }
    if (!find_chunk(current, size_class)) return {};
  }
}

// The first free cell, or up to `most` that were never used; none: the chunk is used up.
Slab::Run Slab::take(std::uint32_t chunk, std::uint32_t size_class, std::uint32_t most) {
  std::atomic<std::uint64_t>& anchor = meta(chunk).anchor;
  // acquire: pairs with the release in free_cell, so the free cell's due word is seen
  std::uint64_t seen = anchor.load(std::memory_order_acquire);
  for (;;) {
    Anchor a = Anchor::of(seen);
    if (a.size_class != size_class || !a.has_room()) return {};
    const std::uint32_t index = a.free != kNone ? a.free : a.bump;
    const std::uint32_t count = a.free != kNone ? 1 : std::min(most, cells_of(size_class) - a.bump);
    if (a.free != kNone)
      a.free = static_cast<std::uint32_t>(due(chunk, index).load(std::memory_order_relaxed) & 511);
    else
      a.bump += count;
    a.used += count;
    IDEM_PAUSE_POINT("memory.slab.take");
    // acquire: the cell's earlier life ended before this one begins
    if (anchor.compare_exchange_weak(seen, a.bits(), std::memory_order_acq_rel,
                                     std::memory_order_acquire))
      return {number_of(chunk, size_class, index), count};
  }
}

// Before any of them gets its due word: a bound that is raised must not miss them.
void Slab::mark_taken(std::uint32_t chunk, std::uint32_t size_class, const Run& run) {
  const std::uint32_t first = index_of(run.next, size_class);
  for (std::uint32_t i = 0; i < run.left; ++i)
    due(chunk, first + i).store(kTaken, std::memory_order_relaxed);  // by the CAS
  std::atomic<std::uint64_t>& bound = meta(chunk).due_min;
  std::uint64_t seen = bound.load(std::memory_order_relaxed);
  // release: pairs with due_bound
  while (!bound.compare_exchange_weak(seen, (seen & ~kCountMask) | ((seen + 1) & kCountMask),
                                      std::memory_order_acq_rel)) {
  }
}

void Slab::lower_bound(std::uint32_t chunk, std::uint64_t when) {
  std::atomic<std::uint64_t>& bound = meta(chunk).due_min;
  std::uint64_t seen = bound.load(std::memory_order_relaxed);
  // release: pairs with due_bound
  while ((seen >> kCountBits == 0 || when < seen >> kCountBits) &&
         !bound.compare_exchange_weak(seen, when << kCountBits | (seen & kCountMask),
                                      std::memory_order_acq_rel)) {
  }
}

std::size_t Slab::find_due(std::uint32_t chunk, std::uint64_t when, std::uint32_t& index,
                           std::span<std::uint32_t> numbers) const {
  const std::uint32_t size_class =
      Anchor::of(meta(chunk).anchor.load(std::memory_order_acquire)).size_class;
  // Empty, or about to be: the bound is stale, and the allocation that revives it will lower it.
  const std::uint32_t cells =
      size_class == 0 || size_class == kClassEmptying ? 0 : cells_of(size_class);
  std::size_t count = 0;
  for (; index < cells; ++index) {
    const std::uint64_t word = due(chunk, index).load(std::memory_order_acquire);  // with set_due
    if (word == 0 || word > when) continue;  // free and limbo are beyond every time
    if (count == numbers.size()) return count;
    numbers[count++] = number_of(chunk, size_class, index);
  }
  index = kNoIndex;
  return count;
}

void Slab::raise_bound(std::uint32_t chunk, std::uint64_t bound, std::uint64_t when) {
  Meta& m = meta(chunk);
  const std::uint32_t size_class = Anchor::of(m.anchor.load(std::memory_order_acquire)).size_class;
  const std::uint32_t cells =
      size_class == 0 || size_class == kClassEmptying ? 0 : cells_of(size_class);
  std::uint64_t earliest = Due::kNever + 1;
  for (std::uint32_t index = 0; index < cells; ++index) {
    std::uint64_t word = due(chunk, index).load(std::memory_order_relaxed);
    const bool soon = (word & kTaken) != 0 || (word & (kLimbo | kHome)) == kLimbo;
    if (soon) word = when + 1;  // taken, or used again maybe, and not told yet
    if (word != 0 && word < earliest) earliest = word;
  }
  // Unless cells were taken meanwhile: the count in the word tells. It cannot have gone round while
  // this thread is pinned, since cells freed now are not used again before.
  const std::uint64_t raised =
      (earliest > Due::kNever ? 0 : earliest << kCountBits) | (bound & kCountMask);
  IDEM_PAUSE_POINT("memory.evict.bound");
  m.due_min.compare_exchange_strong(bound, raised, std::memory_order_acq_rel);
}

// --- gauges ------------------------------------------------------------------------------------

std::uint64_t Slab::limbo_cells() const {
  std::int64_t cells = 0;
  for (const Stripe& stripe : stripes_) cells += stripe.limbo_cells();
  return cells > 0 ? static_cast<std::uint64_t>(cells) : 0;
}

std::uint64_t Slab::resident_bytes() const {
  const std::int64_t resident = resident_chunks_.load(std::memory_order_relaxed);
  const std::int64_t outside = outside_bytes_.load(std::memory_order_relaxed);
  return static_cast<std::uint64_t>(resident > 0 ? resident : 0) * kChunkBytes +
         std::uint64_t{chunks()} * sizeof(Meta) +
         static_cast<std::uint64_t>(outside > 0 ? outside : 0);
}

}  // namespace idem::memory
