// The index of a shard: where in its list to start. One word per bucket, which is the `next` of the
// bucket's marker in the list (link.hpp); doubling adds words and moves none.
//
// Layout. Segment 0 holds the first buckets; each further one as many as all before it. A segment
// is zero-filled and untouched when it is added: its buckets are linked one by one, later, by the
// writers that pass (shard.cpp). Segments stay until the shard goes.
//
// Invariants
//   1 size() only grows, and covers only segments that are there.
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

  // first: a power of two. All of them are linked at once: the list starts complete.
  explicit Buckets(std::uint32_t first);
  ~Buckets();
  Buckets(const Buckets&) = delete;
  Buckets& operator=(const Buckets&) = delete;

  [[nodiscard]] std::uint32_t size() const {
    return size_.load(std::memory_order_acquire);  // pairs with the CAS in grow
  }
  [[nodiscard]] std::atomic<std::uint64_t>& word(std::uint32_t bucket) const {
    const std::uint32_t high = bucket >> first_bits_;
    if (high == 0) return segments_[0].load(std::memory_order_acquire)[bucket];
    const auto segment = static_cast<std::uint32_t>(std::bit_width(high));
    // acquire: pairs with the CAS in grow that published the segment
    return segments_[segment].load(std::memory_order_acquire)[bucket - segment_first(segment)];
  }
  // The word of the nearest bucket at or above `bucket` that is linked.
  [[nodiscard]] std::atomic<std::uint64_t>& start(std::uint32_t bucket) const;

  // Doubles, unless the size is not `size` any more.
  void grow(std::uint32_t size);

  // A bucket that may be waiting to be linked, each told about once; 0: none.
  [[nodiscard]] std::uint32_t next_to_link();

  [[nodiscard]] std::uint64_t bytes() const { return std::uint64_t{size()} * 8; }

 private:
  [[nodiscard]] std::uint32_t segment_first(std::uint32_t segment) const {
    return 1U << (first_bits_ + segment - 1);
  }
  [[nodiscard]] std::size_t segment_bytes(std::uint32_t segment) const {
    return std::size_t{8} << (first_bits_ + (segment == 0 ? 0 : segment - 1));
  }

  const std::uint32_t first_bits_;
  std::atomic<std::uint32_t> size_;
  std::array<std::atomic<std::atomic<std::uint64_t>*>, 32> segments_{};
  alignas(64) std::atomic<std::uint32_t> link_cursor_;
};

}  // namespace idem::memory
