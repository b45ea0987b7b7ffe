// A link of a shard's list: one 64-bit word, so that following, inserting and replacing are one
// atomic step each.
//
//   63 ........ 32   31    30 ......... 0
//   order            flag  record number
//
// The order is the bit-reversed low half of the key's hash, so that doubling the number of buckets
// splits each bucket's stretch of the list in two and moves nothing (Shalev and Shavit,
// "Split-ordered lists", 2006). An odd order belongs to a record, an even one to a bucket's marker.
// Because a link tells the order of what it leads to, a walk stops without touching the record
// behind the end of its bucket.
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

// The order of a key's record.
[[nodiscard]] constexpr std::uint32_t record_order(std::uint64_t hash) {
  return reverse_bits(static_cast<std::uint32_t>(hash)) | 1U;
}

// The order of a bucket's marker: before every record of that bucket.
[[nodiscard]] constexpr std::uint32_t marker_order(std::uint32_t bucket) {
  return reverse_bits(bucket);
}

class Link {
 public:
  static constexpr std::uint64_t kFlag = std::uint64_t{1} << 31;
  static constexpr std::uint32_t kNumberMax = 0x7FFFFFFFU;

  constexpr Link() = default;
  explicit constexpr Link(std::uint64_t bits) : bits_(bits) {}

  [[nodiscard]] static constexpr Link to_record(std::uint32_t order, std::uint32_t number) {
    return Link((std::uint64_t{order} << 32) | number);
  }
  [[nodiscard]] static constexpr Link to_marker(std::uint32_t bucket) {
    return Link(std::uint64_t{marker_order(bucket)} << 32);
  }
  [[nodiscard]] static constexpr Link end() { return Link(std::uint64_t{0xFFFFFFFFU} << 32); }

  [[nodiscard]] constexpr std::uint64_t bits() const { return bits_; }
  [[nodiscard]] constexpr std::uint32_t order() const {
    return static_cast<std::uint32_t>(bits_ >> 32);
  }
  [[nodiscard]] constexpr std::uint32_t number() const {
    return static_cast<std::uint32_t>(bits_) & kNumberMax;
  }
  [[nodiscard]] constexpr bool flagged() const { return (bits_ & kFlag) != 0; }
  [[nodiscard]] constexpr Link plain() const { return Link(bits_ & ~kFlag); }
  [[nodiscard]] constexpr Link with_flag() const { return Link(bits_ | kFlag); }
  [[nodiscard]] constexpr bool is_marker() const { return (order() & 1U) == 0; }
  [[nodiscard]] constexpr bool is_end() const { return !is_marker() && number() == 0; }
  // Of a marker.
  [[nodiscard]] constexpr std::uint32_t bucket() const { return reverse_bits(order()); }

 private:
  std::uint64_t bits_ = 0;  // 0 leads nowhere and is never stored in a list: an unused bucket
};

}  // namespace idem::memory
