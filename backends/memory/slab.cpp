#include "slab.hpp"

#include <cstdlib>

#include "epoch.hpp"
#include "idem/pause_point.hpp"
#include "pages.hpp"

namespace idem::memory {

Slab::Anchor Slab::Anchor::of(std::uint64_t bits) {
  Anchor a;
  a.size_class = static_cast<std::uint32_t>(bits & 15);
  a.used = static_cast<std::uint32_t>(bits >> 4 & 511);
  a.bump = static_cast<std::uint32_t>(bits >> 13 & 511);
  a.free = kNone - static_cast<std::uint32_t>(bits >> 22 & 511);  // so that 0 is an unused chunk
  a.warm = (bits >> 31 & 1) != 0;
  return a;
}

std::uint64_t Slab::Anchor::bits() const {
  return std::uint64_t{size_class} | std::uint64_t{used} << 4 | std::uint64_t{bump} << 13 |
         std::uint64_t{kNone - free} << 22 | std::uint64_t{warm} << 31;
}

bool Slab::Anchor::has_room() const { return free != kNone || bump < cells_of(size_class); }

Slab::~Slab() {
  for (std::uint32_t chunk = 0; chunk < chunks(); ++chunk) {
    const Anchor a = Anchor::of(meta(chunk).anchor.load());
    for (std::uint32_t index = 0; index < a.bump && a.size_class != 0; ++index)
      if ((due(chunk, index).load() & kFree) == 0)
        std::free(cell(number_of(chunk, a.size_class, index)).outside);
  }
  for (std::uint32_t region = 0; region < kRegions; ++region)
    if (char* const base = regions_[region].load()) unmap_pages(base, region_bytes(region));
}

std::uint32_t Slab::allocate(std::uint32_t size_class) {
  for (;;) {
    const std::uint32_t total = chunks();
    // relaxed: only where to begin
    const std::uint32_t first = current_[size_class].load(std::memory_order_relaxed);
    std::uint32_t empty = total;
    for (std::uint32_t i = 0; i < total; ++i) {
      const std::uint32_t chunk = first + i < total ? first + i : first + i - total;
      const Anchor seen = Anchor::of(meta(chunk).anchor.load(std::memory_order_relaxed));
      if (seen.size_class == size_class && seen.has_room()) {
        if (const std::uint32_t number = take(chunk, size_class)) {
          if (i != 0) current_[size_class].store(chunk, std::memory_order_relaxed);
          return number;
        }
      } else if (seen.size_class == 0 && (empty == total || seen.warm)) {
        empty = chunk;
      }
    }
    if (empty == total && !add_chunk()) return 0;
    if (const std::uint32_t number = take_empty(empty, size_class)) {
      current_[size_class].store(empty, std::memory_order_relaxed);
      return number;
    }
  }
}

std::uint32_t Slab::take(std::uint32_t chunk, std::uint32_t size_class) {
  std::atomic<std::uint64_t>& anchor = meta(chunk).anchor;
  // acquire: pairs with the release in free_cell, so the free cell's due word is seen
  std::uint64_t seen = anchor.load(std::memory_order_acquire);
  for (;;) {
    Anchor a = Anchor::of(seen);
    if (a.size_class != size_class || !a.has_room()) return 0;
    const std::uint32_t index = a.free != kNone ? a.free : a.bump;
    if (a.free != kNone)
      a.free = static_cast<std::uint32_t>(due(chunk, index).load(std::memory_order_relaxed) & 511);
    else
      ++a.bump;
    ++a.used;
    IDEM_PAUSE_POINT("memory.slab.take");
    // acquire: the cell's earlier life ended before this one begins
    if (anchor.compare_exchange_weak(seen, a.bits(), std::memory_order_acq_rel,
                                     std::memory_order_acquire))
      return number_of(chunk, size_class, index);
  }
}

std::uint32_t Slab::take_empty(std::uint32_t chunk, std::uint32_t size_class) {
  std::atomic<std::uint64_t>& anchor = meta(chunk).anchor;
  std::uint64_t seen = anchor.load(std::memory_order_acquire);  // pairs with empty_chunk
  const Anchor was = Anchor::of(seen);
  if (was.size_class != 0) return 0;
  Anchor a;
  a.size_class = size_class;
  a.used = a.bump = 1;
  if (!anchor.compare_exchange_strong(seen, a.bits(), std::memory_order_acq_rel)) return 0;
  if (was.warm)
    warm_empty_.fetch_sub(1, std::memory_order_relaxed);
  else
    resident_chunks_.fetch_add(1, std::memory_order_relaxed);
  return number_of(chunk, size_class, 0);
}

// After it there is one chunk more than before, made by this thread or another. False: the numbers
// or the memory are at their end.
bool Slab::add_chunk() {
  std::uint32_t total = chunks();
  if (total >= chunks_max_) return false;
  const std::uint32_t region = region_of(total);
  if (region_base(region) == nullptr) {
    auto* const base = static_cast<char*>(map_pages(region_bytes(region)));
    if (base == nullptr) return false;
    IDEM_PAUSE_POINT("memory.grow.slab");
    char* none = nullptr;
    // release: pairs with region_base
    if (!regions_[region].compare_exchange_strong(none, base, std::memory_order_acq_rel))
      unmap_pages(base, region_bytes(region));
  }
  // release: pairs with chunks(): whoever counts the chunk finds its region
  chunk_count_.compare_exchange_strong(total, total + 1, std::memory_order_acq_rel);
  return true;
}

void Slab::set_due(std::uint32_t number, std::uint32_t size_class, std::uint64_t when,
                   std::uint32_t order) {
  const std::uint32_t chunk = number / kChunkGranules;
  // relaxed: a hint; the CAS below publishes it to whoever relies on the bound
  due(chunk, index_of(number, size_class))
      .store(std::uint64_t{Due::prefix_of(order)} << 42 | when, std::memory_order_relaxed);
  std::atomic<std::uint64_t>& bound = meta(chunk).due_min;
  std::uint64_t seen = bound.load(std::memory_order_relaxed);
  for (;;) {
    const std::uint64_t before = seen >> 22;
    const std::uint64_t least = before == 0 || when < before ? when : before;
    // release: pairs with sweep_chunk
    if (bound.compare_exchange_weak(seen, least << 22 | ((seen + 1) & 0x3FFFFFU),
                                    std::memory_order_acq_rel))
      return;
  }
}

void Slab::retire(std::uint32_t number) {
  Cell& dead = cell(number);
  due(number / kChunkGranules, index_of(number, dead.size_class))
      .store(0, std::memory_order_relaxed);
  std::atomic<std::uint32_t>& stack = limbo_[current_epoch() & 3];
  IDEM_PAUSE_POINT("memory.reclaim.retire");
  dead.limbo_next = stack.load(std::memory_order_relaxed);
  // release: pairs with the exchange in reclaim
  while (!stack.compare_exchange_weak(dead.limbo_next, number, std::memory_order_acq_rel)) {
  }
  limbo_cells_.fetch_add(1, std::memory_order_relaxed);
}

void Slab::reclaim(std::size_t limit) {
  // acquire: pairs with the CAS that left the rest there
  std::size_t done = 0;
  if (ready_.load(std::memory_order_relaxed) != 0)
    done = free_chain(ready_.exchange(0, std::memory_order_acquire), limit);
  if (done >= limit) return;
  try_advance();
  std::atomic<std::uint32_t>& stack = limbo_[(current_epoch() + 2) & 3];
  if (stack.load(std::memory_order_relaxed) == 0) return;
  // acquire: pairs with the CAS in retire
  const std::uint32_t head = stack.exchange(0, std::memory_order_acquire);
  IDEM_PAUSE_POINT("memory.reclaim.detached");
  free_chain(head, limit - done);
}

std::size_t Slab::free_chain(std::uint32_t head, std::size_t limit) {
  std::size_t done = 0;
  while (head != 0) {
    if (done >= limit) {
      std::uint32_t none = 0;
      // release: pairs with the exchange in reclaim. Taken: another rest waits there already, and
      // this one is freed here, rather than walked to its end.
      if (ready_.compare_exchange_strong(none, head, std::memory_order_release)) return done;
    }
    const std::uint32_t next = cell(head).limbo_next;
    free_cell(head);
    head = next;
    ++done;
  }
  return done;
}

void Slab::free_cell(std::uint32_t number) {
  Cell& dead = cell(number);
  const std::uint32_t size_class = dead.size_class;
  count_outside(-static_cast<std::int64_t>(dead.outside_bytes()));
  std::free(dead.outside);
  limbo_cells_.fetch_sub(1, std::memory_order_relaxed);
  const std::uint32_t chunk = number / kChunkGranules;
  const std::uint32_t index = index_of(number, size_class);
  std::atomic<std::uint64_t>& anchor = meta(chunk).anchor;
  std::uint64_t seen = anchor.load(std::memory_order_relaxed);
  for (;;) {
    Anchor a = Anchor::of(seen);
    due(chunk, index).store(kFree | a.free, std::memory_order_relaxed);
    a.free = index;
    const bool last = --a.used == 0;
    if (last) a.size_class = kClassEmptying;
    IDEM_PAUSE_POINT("memory.slab.free");
    // release: pairs with take(): the due word, and the end of the cell's life
    if (!anchor.compare_exchange_weak(seen, a.bits(), std::memory_order_acq_rel)) continue;
    if (last) empty_chunk(chunk);
    return;
  }
}

// The chunk is this thread's alone. One empty chunk per shard keeps its pages, so that a shard with
// a record now and then does not ask the system each time.
void Slab::empty_chunk(std::uint32_t chunk) {
  Anchor a;
  a.warm = true;
  if (warm_empty_.fetch_add(1, std::memory_order_relaxed) >= 1) {
    warm_empty_.fetch_sub(1, std::memory_order_relaxed);
    a.warm = false;
    IDEM_PAUSE_POINT("memory.slab.drop");
    drop_pages(chunk_data(chunk), kChunkBytes);
    resident_chunks_.fetch_sub(1, std::memory_order_relaxed);
  }
  meta(chunk).anchor.store(a.bits(), std::memory_order_release);  // pairs with take_empty
}

std::uint64_t Slab::limbo_cells() const {
  const std::int64_t cells = limbo_cells_.load(std::memory_order_relaxed);
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
