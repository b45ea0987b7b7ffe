// Reclaiming: what becomes of cells that leave limbo (slab.hpp).
#include <cstdlib>

#include "idem/pause_point.hpp"
#include "slab.hpp"

namespace idem::memory {

void Slab::reclaim(std::size_t limit) {
  const epoch::Slot& seat = epoch::seat_taken();
  Stripe& mine = stripes_[seat.stripe];
  if (seat.alone)
    reclaim_mine(mine, limit);
  else if (mine.limbo_cells() >= kRetiredPerTry)
    reclaim(mine, limit, Fate::freed);
  Stripe& other = stripes_[add_in_stripe(mine.turn, 1U) % kStripes];
  if (&other != &mine && other.limbo_cells() > kLimboMost) reclaim(other, limit, Fate::freed);
}

// Of the stripe that the calling thread is alone in.
void Slab::reclaim_mine(Stripe& stripe, std::size_t limit) {
  const bool pressed = stripe.limbo_cells() > kLimboMost;
  if (!pressed && stripe.spare_cells() >= kSparesLow) return;
  const Fate fate = pressed ? Fate::use_or_freed : Fate::to_use;
  std::size_t done = reclaim_ready(stripe, limit, fate);
  if (done >= limit || stripe.ready.load(std::memory_order_relaxed) != 0) return;
  const std::int64_t retired = stripe.retired.load(std::memory_order_relaxed);
  if (retired - stripe.tried < kRetiredPerTry) return;
  stripe.tried = retired;
  // Another thread may have moved it on meanwhile.
  if (current_epoch() == stripe.tried_epoch) try_advance();
  stripe.tried_epoch = current_epoch();
  reclaim_oldest(stripe, limit - done, fate);
}

void Slab::reclaim_everywhere(std::size_t limit) {
  const epoch::Slot& seat = epoch::seat_taken();
  if (seat.alone) give_back_spares(stripes_[seat.stripe]);
  for (epoch::Slot* left = epoch::take_free_seat(nullptr); left != nullptr;) {
    if (left->alone) give_back_spares(stripes_[left->stripe]);
    epoch::leave_seat(*left);
    left = epoch::take_free_seat(left);
  }
  for (Stripe& stripe : stripes_)
    if (stripe.limbo_cells() != 0) reclaim(stripe, limit, Fate::freed);
}

std::size_t Slab::reclaim(Stripe& stripe, std::size_t limit, Fate fate) {
  const std::size_t done = reclaim_ready(stripe, limit, fate);
  if (done >= limit) return done;
  try_advance();
  return done + reclaim_oldest(stripe, limit - done, fate);
}

std::size_t Slab::reclaim_ready(Stripe& stripe, std::size_t limit, Fate fate) {
  if (stripe.ready.load(std::memory_order_relaxed) == 0) return 0;
  // acquire: pairs with the CAS that left the rest there
  return disperse(stripe, stripe.ready.exchange(0, std::memory_order_acquire), limit, fate);
}

std::size_t Slab::reclaim_oldest(Stripe& stripe, std::size_t limit, Fate fate) {
  std::atomic<Buried>& stack = stripe.limbo[(current_epoch() + 2) & 3];
  if (stack.load(std::memory_order_relaxed) == 0) return 0;
  IDEM_PAUSE_POINT("memory.reclaim.oldest");
  // acquire: pairs with the CAS in retire
  const Buried head = stack.exchange(0, std::memory_order_acquire);
  IDEM_PAUSE_POINT("memory.reclaim.detached");
  return disperse(stripe, head, limit, fate);
}

std::size_t Slab::disperse(Stripe& stripe, Buried head, std::size_t limit, Fate fate) {
  std::size_t done = 0;
  bool enough = false;
  Bundle bundle;
  while (head != 0) {
    const std::uint32_t number = number_in(head);
    const std::uint32_t size_class = class_in(head);
    std::atomic<std::uint64_t>& at = due_of(head);
    const std::uint64_t word = at.load(std::memory_order_relaxed);
    Spares& spares = stripe.spares[size_class];
    const bool home = fate == Fate::freed || (word & kHome) != 0;
    const bool use = !home && spares.count < kSparesMost;
    enough = enough || done >= limit || (fate == Fate::to_use && !home && !use);
    if (enough) {
      Buried none = 0;
      // release: pairs with the exchange in reclaim_ready. Taken: another rest waits there already,
      // and this one is freed here, rather than walked to its end.
      if (stripe.ready.compare_exchange_strong(none, head, std::memory_order_release)) break;
    }
    if ((word & kHasOutside) != 0) free_outside(cell(number));
    if (use) {
      at.store(kTaken | spares.first, std::memory_order_relaxed);  // read by this thread only
      spares.first = number;
      ++spares.count;
    } else {
      put(bundle, number, size_class);
    }
    head = word & kBuriedMask;
    ++done;
  }
  give_back(bundle);
  stripe.freed.fetch_add(static_cast<std::int64_t>(done), std::memory_order_relaxed);
  return done;
}

void Slab::free_outside(const Cell& dead) {
  count_outside(-static_cast<std::int64_t>(dead.outside_bytes()));
  std::free(dead.outside());
}

void Slab::give_back_spares(Stripe& stripe) {
  for (std::uint32_t size_class = 1; size_class <= kClassLargest; ++size_class) {
    Bundle bundle;
    Spares& spares = stripe.spares[size_class];
    while (const std::uint32_t number = spares.first) {
      spares.first =
          static_cast<std::uint32_t>(due_of(number, size_class).load(std::memory_order_relaxed));
      put(bundle, number, size_class);
    }
    spares.count = 0;
    give_back(bundle);
  }
}

// Neighbours in a chain are often of one chunk; else what was put before goes back first.
void Slab::put(Bundle& bundle, std::uint32_t number, std::uint32_t size_class) {
  const std::uint32_t chunk = number / kChunkGranules;
  if (bundle.chunk != chunk) give_back(bundle);
  const std::uint32_t index = index_of(number, size_class);
  due(chunk, index).store(kFree | bundle.first, std::memory_order_relaxed);  // by the CAS
  if (bundle.count++ == 0) bundle.last = index;
  bundle.chunk = chunk;
  bundle.size_class = size_class;
  bundle.first = index;
}

void Slab::give_back(Bundle& bundle) {
  if (bundle.count == 0) return;
  const std::uint32_t cells = cells_of(bundle.size_class);
  std::atomic<std::uint64_t>& anchor = meta(bundle.chunk).anchor;
  std::uint64_t seen = anchor.load(std::memory_order_relaxed);
  for (;;) {
    Anchor a = Anchor::of(seen);
    due(bundle.chunk, bundle.last).store(kFree | a.free, std::memory_order_relaxed);
    a.free = bundle.first;
    a.used -= bundle.count;
    const bool last = a.used == 0 && a.place != Place::current;
    const bool list = !last && a.place == Place::none && cells - a.used >= cells / 4;
    if (last) a.size_class = kClassEmptying;
    if (list) a.place = Place::listed;
    IDEM_PAUSE_POINT("memory.slab.free");
    // release: pairs with take(): the due words, and the end of the cells' lives
    if (!anchor.compare_exchange_weak(seen, a.bits(), std::memory_order_acq_rel)) continue;
    if (last) empty_chunk(bundle.chunk);
    if (list) push(piles_[bundle.size_class], bundle.chunk);
    break;
  }
  bundle = {};
}

}  // namespace idem::memory
