// The index of a shard: where in its list to start. One word per bucket, which is the `next` of the
// bucket's marker in the list (link.hpp); growing adds words and moves none.
//
// Layout. Segment 0 holds the first buckets; each further one as many as all before it. A segment
// is zero-filled and untouched when it is added. Buckets come into use in the order of their
// numbers, so many at a time as the records need (linear hashing): `count` is how many are. With
// n = count between two powers of two, h <= n < 2h, a hash belongs to its bucket modulo 2h if that
// is below n, else to the one modulo h.
//
// Invariants
//   1 count only grows, and covers only segments that are there.
//   2 A word is 0 (unused), flagged (being linked: read through it, do not start at it), or a plain
//     link: then its marker is in the list for good.
//
// Progress. Adding a segment: whoever's CAS takes; the others give their pages back. Nobody waits
// for a bucket to be linked: a walk starts at a nearer ancestor instead, the bucket without its
// highest bit, of which bucket 0 is always usable.
#pragma once

#include <array>
#include <atomic>
#include <bit>
#include <cstddef>
#include <cstdint>

#include "link.hpp"

namespace idem::memory {

class Buckets {
 public:
  static constexpr std::uint32_t kBucketsMax = 1U << 31;
  static constexpr std::uint32_t kStep = 16;  // buckets that come into use together

  // first: a power of two, at least kStep. All of them are linked at once: the list starts
  // complete.
  explicit Buckets(std::uint32_t first);
  ~Buckets();
  Buckets(const Buckets&) = delete;
  Buckets& operator=(const Buckets&) = delete;

  [[nodiscard]] std::uint32_t count() const {
    return count_.load(std::memory_order_acquire);  // pairs with the CAS in grow
  }
  // Where a key of that hash belongs.
  [[nodiscard]] std::uint32_t of(std::uint64_t hash) const {
    const std::uint32_t n = count();
    const std::uint32_t half = std::bit_floor(n);
    const auto low = static_cast<std::uint32_t>(hash);
    const std::uint32_t bucket = low & (half * 2 - 1);
    return bucket < n ? bucket : bucket & (half - 1);
  }
  [[nodiscard]] std::atomic<std::uint64_t>& word(std::uint32_t bucket) const {
    const auto segment = static_cast<std::uint32_t>(std::bit_width(bucket >> first_bits_));
    // acquire: pairs with the CAS in grow that published the segment
    const std::uintptr_t origin = segments_[segment].load(std::memory_order_acquire);
    return *reinterpret_cast<std::atomic<std::uint64_t>*>(origin + std::uintptr_t{bucket} * 8);
  }
  // The word of the nearest bucket at or above `bucket` that is linked.
  [[nodiscard]] std::atomic<std::uint64_t>& start(std::uint32_t bucket) const {
    for (;;) {
      std::atomic<std::uint64_t>& found = word(bucket);
      const Link link(found.load());
      if (link.bits() != 0 && !link.flagged()) return found;
      bucket &= ~std::bit_floor(bucket);
    }
  }

  // Brings kStep more buckets into use, unless there are not `count` any more. Returns the first of
  // them, for the caller to link; 0: none, or no memory for them.
  [[nodiscard]] std::uint32_t grow(std::uint32_t count);

  [[nodiscard]] std::uint64_t bytes() const { return std::uint64_t{count()} * 8; }

 private:
  [[nodiscard]] std::uint32_t segment_first(std::uint32_t segment) const {
    return segment == 0 ? 0 : 1U << (first_bits_ + segment - 1);
  }
  [[nodiscard]] std::size_t segment_bytes(std::uint32_t segment) const {
    return std::size_t{8} << (first_bits_ + (segment == 0 ? 0 : segment - 1));
  }

  [[nodiscard]] void* segment_pages(std::uint32_t segment) const {
    return reinterpret_cast<void*>(segments_[segment].load() +
                                   std::uintptr_t{segment_first(segment)} * 8);
  }

  const std::uint32_t first_bits_;
  std::atomic<std::uint32_t> count_;
  // Of each segment: where bucket 0 would be, if it were in it; 0: it is not there.
  std::array<std::atomic<std::uintptr_t>, 32> segments_{};
};

}  // namespace idem::memory
