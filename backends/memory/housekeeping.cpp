#include "housekeeping.hpp"

#include <algorithm>
#include <array>

namespace idem::memory {
namespace {

// How far the calling thread goes on from a chunk where it met another one: every stripe has its
// own share of the way round.
[[nodiscard]] std::uint32_t apart(std::uint32_t chunks) {
  const auto share = static_cast<std::uint32_t>((thread_stripe() + 1) * 0x9E3779B9U);  // Fibonacci
  return static_cast<std::uint32_t>(std::uint64_t{chunks} * share >> 32);
}

}  // namespace

std::size_t Housekeeping::round(Time now) {
  slab_.reclaim(kRemovalsPerRound * 2);
  const std::uint32_t chunks = slab_.chunks();
  if (chunks == 0) return 0;
  const std::uint64_t when = Due::code(now, birth_);
  Stripe& stripe = mine();
  // relaxed: only deals out work; two threads at one chunk are no harm
  std::uint32_t chunk = stripe.cursor.load(std::memory_order_relaxed);
  std::size_t gone = 0;
  for (std::uint32_t look = 0; look < std::min(chunks, kChunksPerRound); ++look) {
    if (chunk >= chunks) chunk %= chunks;
    if (Slab::is_due(slab_.due_bound(chunk), when)) {
      const Gone here = evict_chunk(chunk, when, now, kRemovalsPerRound - gone);
      gone += here.count;
      if (here.met) {
        chunk += apart(chunks);
        break;
      }
      if (gone >= kRemovalsPerRound) break;  // here again next time
    }
    ++chunk;
  }
  stripe.cursor.store(chunk, std::memory_order_relaxed);
  return gone;
}

std::size_t Housekeeping::evict(Time now, std::size_t limit, std::uint32_t first,
                                std::uint32_t& looked) {
  const std::uint64_t when = Due::code(now, birth_);
  const std::uint32_t chunks = slab_.chunks();
  const std::uint32_t end = std::min(chunks, looked + 1024);
  std::size_t gone = 0;
  for (; looked < end; ++looked) {
    const std::uint32_t chunk = (first + looked) % chunks;
    if (!Slab::is_due(slab_.due_bound(chunk), when)) continue;
    gone += evict_chunk(chunk, when, now, limit - gone).count;
    if (gone >= limit) break;  // there may be more in it
  }
  return gone;
}

Housekeeping::Gone Housekeeping::evict_chunk(std::uint32_t chunk, std::uint64_t when, Time now,
                                             std::size_t limit) {
  constexpr std::size_t kWindow = kRemovalsPerRound;
  std::array<std::uint32_t, kWindow> numbers;
  std::array<ShardOf::Home, kWindow> homes;
  std::array<const Shard::Word*, kWindow> words;
  const std::uint64_t bound = slab_.due_bound(chunk);
  Slab::Chain chain;
  Gone gone;
  for (std::uint32_t index = 0; index != Slab::kNoIndex;) {
    if (gone.count >= limit) return gone;
    const std::size_t count =
        slab_.find_due(chunk, when, index, {numbers.data(), std::min(kWindow, limit - gone.count)});
    for (std::size_t i = 0; i < count; ++i) {
      const char* const at = slab_.cell_at(numbers[i]);
      __builtin_prefetch(at);
      __builtin_prefetch(at + 64);
    }
    for (std::size_t i = 0; i < count; ++i) {
      homes[i] = shard_of_.home_of(slab_.cell(numbers[i]));
      words[i] = &homes[i].shard->first_word(homes[i].hash);
      Shard::prefetch_bucket(*words[i]);
    }
    for (std::size_t i = 0; i < count; ++i)
      homes[i].shard->prefetch_record(*words[i], homes[i].hash);
    for (std::size_t i = 0; i < count; ++i)
      homes[i].shard->prefetch_behind(*words[i], homes[i].hash);
    for (std::size_t i = 0; i < count; ++i) {
      const Shard::Evicted done = homes[i].shard->evict(homes[i].hash, numbers[i], now, chain);
      gone.met = gone.met || done == Shard::Evicted::not_there;
      if (done != Shard::Evicted::yes) continue;
      removed(*homes[i].shard, 1);
      ++gone.count;
    }
    slab_.retire(chain);
  }
  slab_.raise_bound(chunk, bound, when);
  return gone;
}

std::uint64_t Housekeeping::records() const {
  std::int64_t sum = 0;
  for (const Stripe& stripe : stripes_)
    sum += stripe.added.load(std::memory_order_relaxed) -
           stripe.removed.load(std::memory_order_relaxed);
  return sum > 0 ? static_cast<std::uint64_t>(sum) : 0;
}

}  // namespace idem::memory
