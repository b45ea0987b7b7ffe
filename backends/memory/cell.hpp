// A record as it lies in the slab: one cell, written once by one thread before it is linked, and
// never changed after that but for its link and the two words that settle() sets once.
//
// Layout. A fixed head, then only what this record needs, packed in this order:
//
//   keep 8 | result bytes 4? | attempt 4? | until 8? | fence 8? | created 8? | written 8? |
//   outside 8? | before 2? | scope 2? | tenant, biz_type, key | result? | (aligned to 8) late 8?
//
// `bits` tells which are there. What can be told from another field is left out: the time of
// writing is the version (or a few µs `before` it), the fence of a claim is its version, the time
// of creation is the fence of the first attempt. So a claim with a UUID as key takes 128 bytes, its
// 64-byte result 64 more.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <string_view>

#include "idem/key.hpp"
#include "idem/record.hpp"
#include "idem/store.hpp"

namespace idem::memory {

inline constexpr std::size_t kGranuleBytes = 64;

// Sizes a cell can have, in granules. 0 is no class: an unused chunk.
inline constexpr std::array<std::uint32_t, 7> kClassGranules{0, 2, 3, 4, 5, 6, 8};
inline constexpr std::uint32_t kClassLargest = kClassGranules.size() - 1;

[[nodiscard]] constexpr std::size_t class_bytes(std::uint32_t size_class) {
  return kClassGranules[size_class] * kGranuleBytes;
}
inline constexpr std::array<std::uint8_t, 9> kClassOf{1, 1, 1, 2, 3, 4, 5, 6, 6};  // by granules
// The smallest class for so many bytes, or 0 if none is large enough.
[[nodiscard]] constexpr std::uint32_t class_for(std::size_t bytes) {
  const std::size_t granules = (bytes + kGranuleBytes - 1) / kGranuleBytes;
  return granules < kClassOf.size() ? kClassOf[granules] : 0;
}

// Without overflow: the end of time is as late as it gets.
[[nodiscard]] inline Time later(Time at, Micros by) {
  std::int64_t sum = 0;
  if (__builtin_add_overflow(at.time_since_epoch().count(), by.count(), &sum))
    sum = std::numeric_limits<std::int64_t>::max();
  return Time(Micros(sum));
}

[[nodiscard]] inline std::uint64_t micros_of(Time at) {
  const std::int64_t micros = at.time_since_epoch().count();
  return micros < 1 ? 1 : static_cast<std::uint64_t>(micros);
}

// The `bits` of a cell.
struct CellBits {
  static constexpr std::uint32_t kKeyBytes = 0xFF;
  // The fields that may be there, in their order:
  static constexpr unsigned kFieldsAt = 8;
  static constexpr std::uint32_t kResult = 1U << 8;
  static constexpr std::uint32_t kAttempt = 1U << 9;
  static constexpr std::uint32_t kUntil = 1U << 10;
  static constexpr std::uint32_t kFence = 1U << 11;
  static constexpr std::uint32_t kCreated = 1U << 12;
  static constexpr std::uint32_t kWritten = 1U << 13;
  static constexpr std::uint32_t kOutside = 1U << 14;
  static constexpr std::uint32_t kBefore = 1U << 15;
  static constexpr std::uint32_t kScope = 1U << 16;
  static constexpr std::array<std::uint8_t, 9> kFieldBytes{4, 4, 8, 8, 8, 8, 8, 2, 2};
  static constexpr std::uint32_t kFields = 0x1FFU << kFieldsAt;
  // What most records have: one that is claimed, and one that is finished with a result.
  static constexpr std::uint32_t kOfClaim = kUntil;
  static constexpr std::uint32_t kOfFinished = kResult | kFence;
  static constexpr std::uint32_t kLate = 1U << 17;  // made by an insert: settled after it is linked
  static constexpr std::uint32_t kFresh = 1U << 18;  // its create time is the time it was written
  static constexpr unsigned kClassAt = 20;           // 3 bits
  static constexpr unsigned kStatusAt = 24;          // 2 bits
  static constexpr unsigned kKindAt = 26;            // 2 bits
  static constexpr std::uint32_t kTombstone = 1U << 28;
  // All that tells a usual claim and a usual completion, but for key bytes and class: whose bits
  // are one of these needs no other looked at.
  static constexpr std::uint32_t kUsualClaim = kOfClaim | kLate | kFresh;
  static constexpr std::uint32_t kUsualSuccess = kOfFinished | 1U << kStatusAt;
  static constexpr std::uint32_t kClass = 7U << kClassAt;
};

class CellFields;

class Cell {
 public:
  static constexpr std::size_t kKeepAt = 68;  // where the head ends
  static constexpr std::int64_t kUnsettled = std::numeric_limits<std::int64_t>::min();
  // In the version's word; versions are below both (kVersionEnd).
  static constexpr std::uint64_t kProvisional = std::uint64_t{1} << 63;
  static constexpr std::uint64_t kWrittenLate = std::uint64_t{1} << 62;

  std::atomic<std::uint64_t> next;          // a Link; flagged: not the current record of its key
  std::atomic<std::uint64_t> version_word;  // provisional until settled (shard.hpp)
  std::uint32_t bits;
  Fingerprint request_hash;
  Owner owner;

  [[nodiscard]] std::uint32_t size_class() const { return bits >> CellBits::kClassAt & 7U; }
  [[nodiscard]] Status status() const;
  // The version that the version's word tells, whatever else it says.
  [[nodiscard]] static constexpr std::uint64_t version_in(std::uint64_t word) {
    return word & ~(kProvisional | kWrittenLate);
  }
  // Of a settled cell. acquire: pairs with the CAS in settle().
  [[nodiscard]] std::uint64_t version() const {
    return version_in(version_word.load(std::memory_order_acquire));
  }
  [[nodiscard]] Time updated() const;
  [[nodiscard]] Micros keep() const { return Micros(get<std::int64_t>(kKeepAt)); }
  [[nodiscard]] Time expires_at() const { return later(updated(), keep()); }
  [[nodiscard]] Time created(std::uint64_t version) const;
  // The fields that may be there.
  [[nodiscard]] CellFields fields() const;

  // Of a cell made by an insert. planned: the time it has unless settling finds it too early.
  [[nodiscard]] Time planned() const;
  [[nodiscard]] std::atomic<std::int64_t>& late() const;

  [[nodiscard]] KeyRef key() const;
  [[nodiscard]] bool is(const KeyRef& other) const;
  [[nodiscard]] std::string_view result() const;
  [[nodiscard]] char* outside() const;
  [[nodiscard]] std::size_t outside_bytes() const;
  [[nodiscard]] std::int64_t bytes() const {
    return static_cast<std::int64_t>(class_bytes(size_class()) + outside_bytes());
  }

 private:
  friend class CellFields;
  [[nodiscard]] bool has(std::uint32_t what) const { return (bits & what) != 0; }
  [[nodiscard]] const char* at(std::size_t offset) const {
    return reinterpret_cast<const char*>(this) + offset;
  }
  template <class T>
  [[nodiscard]] T get(std::size_t offset) const {
    T value;
    std::memcpy(&value, at(offset), sizeof(T));
    return value;
  }
};

// What is told by a cell's `bits`, the fields behind its head above all. `bits`: the cell's own,
// but for its class, or what they were compared with, so that the compiler knows where each lies.
class CellFields {
 public:
  CellFields(const Cell& cell, std::uint32_t bits) : cell_(cell), bits_(bits) {}

  // Where the fields of a cell with these bits end, and its text begins.
  [[nodiscard]] static constexpr std::size_t ends_at(std::uint32_t bits) {
    return kEnds[(bits & CellBits::kFields) >> CellBits::kFieldsAt];
  }

  [[nodiscard]] Status status() const {
    return static_cast<Status>(bits_ >> CellBits::kStatusAt & 3U);
  }
  // Status, kind of failure and tombstone, a byte for each.
  [[nodiscard]] std::uint32_t told() const {
    const std::uint32_t all = bits_ >> CellBits::kStatusAt;
    return (all | all << 6 | all << 12) & 0x10303U;
  }
  [[nodiscard]] std::uint32_t attempt() const {
    return has(CellBits::kAttempt) ? get<std::uint32_t>(CellBits::kAttempt) : 1;
  }
  [[nodiscard]] std::uint64_t fence(std::uint64_t version) const {
    return has(CellBits::kFence) ? get<std::uint64_t>(CellBits::kFence) : version;
  }
  [[nodiscard]] bool has_until() const { return has(CellBits::kUntil); }
  // processing: its lease; failed: when it may be retried.
  [[nodiscard]] Micros until_after() const {
    return Micros(has(CellBits::kUntil) ? get<std::int64_t>(CellBits::kUntil) : 0);
  }
  [[nodiscard, gnu::always_inline]] Time created(Time written, std::uint64_t fence) const {
    if (has(CellBits::kFresh)) return written;
    return Time(Micros(has(CellBits::kCreated) ? get<std::int64_t>(CellBits::kCreated)
                                               : static_cast<std::int64_t>(fence)));
  }
  [[nodiscard, gnu::always_inline]] Time written(std::uint64_t version) const {
    const auto by_version = static_cast<std::int64_t>(version);
    if (has(CellBits::kWritten)) return Time(Micros(get<std::int64_t>(CellBits::kWritten)));
    if (has(CellBits::kBefore))
      return Time(Micros(by_version - get<std::uint16_t>(CellBits::kBefore)));
    return Time(Micros(by_version));
  }
  [[nodiscard]] char* outside() const {
    return has(CellBits::kOutside) ? get<char*>(CellBits::kOutside) : nullptr;
  }
  [[nodiscard]] std::uint32_t result_bytes() const {
    return has(CellBits::kResult) ? get<std::uint32_t>(CellBits::kResult) : 0;
  }
  [[nodiscard]] const char* text() const { return cell_.at(ends_at(bits_)); }
  [[nodiscard]] std::size_t key_bytes() const { return bits_ & CellBits::kKeyBytes; }
  [[nodiscard]] std::size_t tenant_bytes() const {
    return has(CellBits::kScope) ? get<std::array<std::uint8_t, 2>>(CellBits::kScope)[0] : 0;
  }
  [[nodiscard]] std::size_t biz_type_bytes() const {
    return has(CellBits::kScope) ? get<std::array<std::uint8_t, 2>>(CellBits::kScope)[1] : 0;
  }
  [[nodiscard]] const char* behind_name() const {
    return text() + tenant_bytes() + biz_type_bytes() + key_bytes();
  }
  [[nodiscard, gnu::always_inline]] std::string_view result() const {
    return {has(CellBits::kOutside) ? outside() : behind_name(), result_bytes()};
  }

 private:
  // Of each set of fields, where it ends.
  static constexpr std::array<std::uint8_t, 512> kEnds = [] {
    std::array<std::uint8_t, 512> ends{};
    for (std::size_t fields = 0; fields < ends.size(); ++fields) {
      std::size_t end = Cell::kKeepAt + 8;
      for (std::size_t i = 0; i < CellBits::kFieldBytes.size(); ++i)
        end += (fields >> i & 1U) != 0 ? CellBits::kFieldBytes[i] : 0;
      ends[fields] = static_cast<std::uint8_t>(end);
    }
    return ends;
  }();

  [[nodiscard]] bool has(std::uint32_t what) const { return (bits_ & what) != 0; }
  // A field that is there: it begins where those before it end.
  template <class T>
  [[nodiscard]] T get(std::uint32_t field) const {
    return cell_.get<T>(ends_at(bits_ & (field - 1)));
  }

  const Cell& cell_;
  const std::uint32_t bits_;
};

inline CellFields Cell::fields() const { return {*this, bits}; }
inline Status Cell::status() const { return fields().status(); }
inline char* Cell::outside() const { return fields().outside(); }
inline std::string_view Cell::result() const { return fields().result(); }
inline std::size_t Cell::outside_bytes() const {
  return has(CellBits::kOutside) ? fields().result_bytes() : 0;
}

inline KeyRef Cell::key() const {
  const CellFields of = fields();
  const char* const text = of.text();
  const char* const biz_type = text + of.tenant_bytes();
  const char* const key = biz_type + of.biz_type_bytes();
  return {{text, of.tenant_bytes()}, {biz_type, of.biz_type_bytes()}, {key, of.key_bytes()}};
}

[[nodiscard, gnu::noinline]] inline bool same_bytes_any(const char* a, const char* b,
                                                        std::size_t count) {
  return std::memcmp(a, b, count) == 0;
}

// Without a call for most keys: they are some dozens of bytes, three vectors that overlap. Vectors
// spare the registers that a replay is short of.
[[nodiscard, gnu::always_inline]] inline bool same_bytes(const char* a, const char* b,
                                                         std::size_t count) {
  using Vector = std::uint64_t __attribute__((vector_size(16)));
  const auto difference = [&](std::size_t at) {
    Vector x;
    Vector y;
    std::memcpy(&x, a + at, sizeof(x));
    std::memcpy(&y, b + at, sizeof(y));
    return x ^ y;
  };
  if (count - 16 > 32) [[unlikely]]
    return same_bytes_any(a, b, count);
  const Vector all = difference(0) | difference(count / 2 - 8) | difference(count - 16);
  return (all[0] | all[1]) == 0;
}

// The same for copying.
[[gnu::always_inline]] inline void copy_bytes(char* to, const char* from, std::size_t count) {
  constexpr std::size_t kFew = 16;
  constexpr std::size_t kMany = 1024;  // so many that a call does not matter
  if (count == 64) {
    std::memcpy(to, from, 64);
    return;
  }
  if (count - kFew > kMany - kFew) [[unlikely]] {
    std::memcpy(to, from, count);
    return;
  }
  if (count > 32 && count <= 48) {
    std::memcpy(to, from, 32);
    std::memcpy(to + count - 16, from + count - 16, 16);
    return;
  }
  std::size_t at = 0;
  for (; at + 64 <= count; at += 64) std::memcpy(to + at, from + at, 64);
  if (at == count) return;
  for (; at + 16 < count; at += 16) std::memcpy(to + at, from + at, 16);
  std::memcpy(to + count - 16, from + count - 16, 16);
}

// Most records have a bare key whose text lies at one of two places. Which one is left to the
// processor's foresight: it compares before it has read the cell's bits.
inline bool Cell::is(const KeyRef& other) const {
  const bool bare = other.tenant.empty() && other.biz_type.empty();
  const std::size_t count = other.key.size();
  const auto same_at = [&](std::uint32_t fields) __attribute__((always_inline)) {
    return same_bytes(at(CellFields::ends_at(fields)), other.key.data(), count);
  };
  const std::size_t shape = bits & (CellBits::kFields | CellBits::kKeyBytes);
  if (bare && shape == (CellBits::kOfFinished | count)) return same_at(CellBits::kOfFinished);
  if (bare && shape == (CellBits::kOfClaim | count)) return same_at(CellBits::kOfClaim);
  if (has(CellBits::kScope)) return key() == other;
  return bare && count == (bits & CellBits::kKeyBytes) && same_at(bits);
}

inline Time Cell::created(std::uint64_t version) const {
  return fields().created(updated(), fields().fence(version));
}

inline Time Cell::planned() const { return fields().written(version()); }

inline std::atomic<std::int64_t>& Cell::late() const {
  const std::size_t inside = has(CellBits::kOutside) ? 0 : fields().result_bytes();
  const auto end = static_cast<std::size_t>(fields().behind_name() - at(0)) + inside;
  return *reinterpret_cast<std::atomic<std::int64_t>*>(
      const_cast<char*>(at((end + 7) & ~std::size_t{7})));
}

inline Time Cell::updated() const {
  // acquire: pairs with the CAS in settle(), which `late` was set before
  if ((version_word.load(std::memory_order_acquire) & kWrittenLate) != 0)
    return Time(Micros(late().load(std::memory_order_relaxed)));
  return planned();
}

}  // namespace idem::memory
