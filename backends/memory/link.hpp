// A link of a shard's list: one 64-bit word, so that following, inserting and replacing are one
// atomic step each.
//
//   63 ........ 32   31    30 ......... 0
//   place            flag  record number
//
// The place is, for a record, the low half of its key's hash with the highest bit set; for a
// bucket's marker the bucket's number. The list is sorted by the place read from its lowest bit on,
// so that doubling the number of buckets splits each bucket's stretch of the list in two and moves
// nothing (Shalev and Shavit, "Split-ordered lists", 2006). A place is not turned round to be
// compared: most walks only ask whether two are the same, and else their lowest different bit
// decides. Because a link tells the place of what it leads to, a walk stops without touching the
// record behind the end of its bucket.
//
// The flag means, in a record's `next`: this record is no longer the current one of its key
// (removed, or replaced by the record the link leads to); and in a bucket's word: do not start
// here, the marker may not be linked yet.
#pragma once

#include <cstdint>

namespace idem::memory {

[[nodiscard]] constexpr std::uint32_t reverse_bits(std::uint32_t x) {
  x = ((x >> 1) & 0x55555555U) | ((x & 0x55555555U) << 1);
  x = ((x >> 2) & 0x33333333U) | ((x & 0x33333333U) << 2);
  x = ((x >> 4) & 0x0F0F0F0FU) | ((x & 0x0F0F0F0FU) << 4);
  return __builtin_bswap32(x);
}

// The place of a key's record: behind its bucket's marker.
[[nodiscard]] constexpr std::uint32_t record_place(std::uint64_t hash) {
  return static_cast<std::uint32_t>(hash) | 0x80000000U;
}

// Whether place a comes before place b: b has the lowest bit in which they differ.
[[nodiscard]] constexpr bool precedes(std::uint32_t a, std::uint32_t b) {
  const std::uint32_t different = a ^ b;
  return (different & (0 - different) & b) != 0;
}

class Link {
 public:
  static constexpr std::uint64_t kFlag = std::uint64_t{1} << 31;
  static constexpr std::uint32_t kNumberMax = 0x7FFFFFFFU;

  constexpr Link() = default;
  explicit constexpr Link(std::uint64_t bits) : bits_(bits) {}

  [[nodiscard]] static constexpr Link to_record(std::uint32_t place, std::uint32_t number) {
    return Link((std::uint64_t{place} << 32) | number);
  }
  [[nodiscard]] static constexpr Link to_marker(std::uint32_t bucket) {
    return Link(std::uint64_t{bucket} << 32);
  }
  [[nodiscard]] static constexpr Link end() { return Link(std::uint64_t{0xFFFFFFFFU} << 32); }

  [[nodiscard]] constexpr std::uint64_t bits() const { return bits_; }
  [[nodiscard]] constexpr std::uint32_t place() const {
    return static_cast<std::uint32_t>(bits_ >> 32);
  }
  [[nodiscard]] constexpr std::uint32_t number() const {
    return static_cast<std::uint32_t>(bits_) & kNumberMax;
  }
  [[nodiscard]] constexpr bool flagged() const { return (bits_ & kFlag) != 0; }
  [[nodiscard]] constexpr Link plain() const { return Link(bits_ & ~kFlag); }
  [[nodiscard]] constexpr Link with_flag() const { return Link(bits_ | kFlag); }
  // The number of the record of that place that it leads to, if it does and is plain; else 0.
  [[nodiscard]] constexpr std::uint32_t number_at(std::uint32_t record_place) const {
    const std::uint64_t rest = bits_ ^ std::uint64_t{record_place} << 32;
    return rest - 1 < kNumberMax ? static_cast<std::uint32_t>(rest) : 0;
  }
  [[nodiscard]] constexpr bool is_marker() const { return (bits_ >> 63) == 0; }
  [[nodiscard]] constexpr bool is_end() const { return !is_marker() && number() == 0; }
  // Of a marker.
  [[nodiscard]] constexpr std::uint32_t bucket() const { return place(); }

 private:
  std::uint64_t bits_ = 0;  // 0 leads nowhere and is never stored in a list: an unused bucket
};

}  // namespace idem::memory
