// The index of a shard: where in its list to start. One word per bucket, which is the `next` of the
// bucket's marker in the list (link.hpp); growing adds words and moves none.
//
// Layout. Segment 0 holds the first buckets; each further one as many as all before it. A segment
// is zero-filled and untouched when it is added. The first ones of all shards lie in one piece
// (shard_array.hpp). Buckets come into use in the order of their
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
  // complete. `room`: zero-filled, for their words, borrowed; nullptr: gets its own.
  explicit Buckets(std::uint32_t first, char* room = nullptr);
  ~Buckets();
  Buckets(const Buckets&) = delete;
  Buckets& operator=(const Buckets&) = delete;

  [[nodiscard]] std::uint32_t count() const {
    // acquire: pairs with the CAS in grow
    return static_cast<std::uint32_t>(level_.load(std::memory_order_acquire));
  }
  // Where a key of that hash belongs.
  [[nodiscard]] std::uint32_t of(std::uint64_t hash) const {
    const std::uint64_t level = level_.load(std::memory_order_acquire);  // pairs as in count
    const auto mask = static_cast<std::uint32_t>(level >> 32);
    const std::uint32_t bucket = static_cast<std::uint32_t>(hash) & mask;
    return bucket < static_cast<std::uint32_t>(level) ? bucket : bucket & (mask >> 1);
  }
  [[nodiscard]] std::atomic<std::uint64_t>& word(std::uint32_t bucket) const {
    std::uint32_t segment = 0;
    if (bucket >= first_) segment = segment_of(bucket);  // mostly all are, or none
    // acquire: pairs with the CAS in grow that published the segment
    const std::uintptr_t origin = segments_[segment].load(std::memory_order_acquire);
    return *reinterpret_cast<std::atomic<std::uint64_t>*>(origin + std::uintptr_t{bucket} * 8);
  }
  // Whose stretch of the list the bucket's begins in.
  [[nodiscard]] static std::uint32_t parent(std::uint32_t bucket) {
    return bucket & ~std::bit_floor(bucket);
  }
  // Where a walk begins: a word in the list, and what it held.
  struct Start {
    std::atomic<std::uint64_t>* word;
    Link seen;
  };
  // That of the nearest bucket at or above `bucket` that is linked.
  [[nodiscard]] Start start(std::uint32_t bucket) const {
    for (;;) {
      std::atomic<std::uint64_t>& found = word(bucket);
      const Link link(found.load());
      if (link.bits() != 0 && !link.flagged()) [[likely]]
        return {&found, link};
      bucket = parent(bucket);
    }
  }

  // Brings kStep more buckets into use, unless there are not `count` any more. Returns the first of
  // them, for the caller to link; 0: none, or no memory for them.
  [[nodiscard]] std::uint32_t grow(std::uint32_t count);

  [[nodiscard]] std::uint64_t bytes() const { return std::uint64_t{count()} * 8; }

 private:
  // `count`, and above it the mask of the smallest power of two that is not below.
  [[nodiscard]] static constexpr std::uint64_t level_of(std::uint32_t count) {
    return std::uint64_t{~0U >> std::countl_zero(count - 1)} << 32 | count;
  }
  [[nodiscard]] std::uint32_t segment_of(std::uint32_t bucket) const {
    return static_cast<std::uint32_t>(std::bit_width(bucket >> first_bits_));
  }
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

  std::atomic<std::uint64_t> level_;
  const bool owns_first_;
  const std::uint32_t first_;  // how many are in segment 0
  const std::uint32_t first_bits_;
  // Of each segment: where bucket 0 would be, if it were in it; 0: it is not there.
  std::array<std::atomic<std::uintptr_t>, 32> segments_{};
};

}  // namespace idem::memory
