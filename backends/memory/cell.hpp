// A record as it lies in the slab: one cell, written once by one thread before it is linked, and
// never changed after that but for its link and the two words that settle() sets once.
//
// The key's bytes follow the header, then the result's if it fits into the cell's size class.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <string_view>

#include "idem/key.hpp"
#include "idem/record.hpp"

namespace idem::memory {

inline constexpr std::size_t kGranuleBytes = 64;

// Sizes a cell can have, in granules. 0 is no class: an unused chunk.
inline constexpr std::array<std::uint32_t, 6> kClassGranules{0, 3, 4, 5, 6, 8};
inline constexpr std::uint32_t kClassLargest = kClassGranules.size() - 1;

[[nodiscard]] constexpr std::size_t class_bytes(std::uint32_t size_class) {
  return kClassGranules[size_class] * kGranuleBytes;
}

// Without overflow: the end of time is as late as it gets.
[[nodiscard]] inline Time later(Time at, Micros by) {
  std::int64_t sum = 0;
  if (__builtin_add_overflow(at.time_since_epoch().count(), by.count(), &sum))
    sum = std::numeric_limits<std::int64_t>::max();
  return Time(Micros(sum));
}

struct Cell {
  std::atomic<std::uint64_t> next;  // a Link; flagged: not the current record of its key
  std::uint64_t hash;
  std::atomic<std::uint64_t> version;  // 0: linked, but not yet settled (see shard.hpp)
  std::uint64_t fence;                 // 0: the version itself (this record is a claim)
  std::uint32_t attempt;
  Status status;
  FailKind fail_kind;
  bool tombstone;
  std::uint8_t tenant_bytes;
  std::uint8_t biz_type_bytes;
  std::uint8_t key_bytes;
  std::uint8_t size_class;
  bool fresh;  // its create time is the time it was written
  std::uint32_t result_bytes;
  Micros until_after;  // processing: its lease; failed: its retry_after
  Micros keep;
  // The second line.
  Time made_at;                          // fresh: not later than written_at; else the create time
  std::atomic<std::int64_t> written_at;  // µs; kUnsettled: not yet settled
  char* outside;             // a result too large for the cell, owned; nullptr: it lies inside
  std::uint32_t limbo_next;  // once retired; written and read by one thread at a time
  Fingerprint request_hash;
  Owner owner;

  static constexpr std::int64_t kUnsettled = std::numeric_limits<std::int64_t>::min();

  // The times, once settled. acquire: pairs with the CAS in settle().
  [[nodiscard]] Time updated() const {
    return Time(Micros(written_at.load(std::memory_order_acquire)));
  }
  [[nodiscard]] Time created() const { return fresh ? updated() : made_at; }
  [[nodiscard]] Time until() const { return later(updated(), until_after); }
  [[nodiscard]] Time expires_at() const { return later(updated(), keep); }

  [[nodiscard]] char* text() { return reinterpret_cast<char*>(this) + sizeof(Cell); }
  [[nodiscard]] const char* text() const {
    return reinterpret_cast<const char*>(this) + sizeof(Cell);
  }
  [[nodiscard]] std::size_t name_bytes() const {
    return std::size_t{tenant_bytes} + biz_type_bytes + key_bytes;
  }
  [[nodiscard]] KeyRef key() const {
    const char* at = text();
    return {{at, tenant_bytes},
            {at + tenant_bytes, biz_type_bytes},
            {at + tenant_bytes + biz_type_bytes, key_bytes}};
  }
  [[nodiscard]] bool is(KeyRef other) const { return key() == other; }
  [[nodiscard]] std::string_view result() const {
    return {outside != nullptr ? outside : text() + name_bytes(), result_bytes};
  }
  [[nodiscard]] std::size_t outside_bytes() const { return outside != nullptr ? result_bytes : 0; }
  // What the record takes, its share of chunk heads and index not counted.
  [[nodiscard]] std::size_t bytes() const { return class_bytes(size_class) + outside_bytes(); }
};

inline constexpr std::size_t kCellHeaderBytes = sizeof(Cell);
static_assert(sizeof(Cell) == 144,
              "two cache lines and the owner; a UUID key fits the rest of three");

// The smallest class for so much text, or 0 if none is large enough.
[[nodiscard]] constexpr std::uint32_t class_for(std::size_t text_bytes) {
  for (std::uint32_t c = 1; c <= kClassLargest; ++c)
    if (kCellHeaderBytes + text_bytes <= class_bytes(c)) return c;
  return 0;
}

static_assert(class_for(kKeyBytesMax + kBizTypeBytesMax + kTenantBytesMax) != 0,
              "every valid key lies inside its cell");

}  // namespace idem::memory
