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
// The smallest class for so many bytes, or 0 if none is large enough.
[[nodiscard]] constexpr std::uint32_t class_for(std::size_t bytes) {
  constexpr std::array<std::uint8_t, 9> kClassOf{1, 1, 1, 2, 3, 4, 5, 6, 6};  // by granules
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
  // Below: the key's bytes. The fields that may be there, in their order:
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
  static constexpr std::uint32_t kLate = 1U << 17;  // made by an insert: settled after it is linked
  static constexpr std::uint32_t kFresh = 1U << 18;  // its create time is the time it was written
  static constexpr std::uint32_t kTombstone = 1U << 19;
  static constexpr unsigned kStatusAt = 20;  // 2 bits
  static constexpr unsigned kKindAt = 22;    // 2 bits
  static constexpr unsigned kClassAt = 24;   // 3 bits
};

// What a cell is made of: known before it has a place.
struct CellPlan {
  std::uint32_t bits = 0;
  std::uint32_t size_class = 0;
  std::uint32_t outside_bytes = 0;  // of a result that does not fit into a cell
  std::uint64_t version = 0;        // of an insert: unless the shard's floor is above it
  Time written{};
  Time created{};

  // Of a record that nothing stood in the way of; settled later.
  [[nodiscard]] static CellPlan of_insert(const KeyRef& key, const Draft& draft, Time now);
  // Of a record that takes the place of another one.
  [[nodiscard]] static CellPlan of_replace(const KeyRef& key, const Draft& draft, Time now,
                                           std::uint64_t version, Time created);
  // Chooses the class, and where the result goes.
  void fit(const KeyRef& key, const Draft& draft);
  // What the record takes, its share of chunk heads and index not counted.
  [[nodiscard]] std::int64_t bytes() const {
    return static_cast<std::int64_t>(class_bytes(size_class) + outside_bytes);
  }
};

class Cell {
 public:
  static constexpr std::int64_t kUnsettled = std::numeric_limits<std::int64_t>::min();
  // In the version's word; versions are below both (kVersionEnd).
  static constexpr std::uint64_t kProvisional = std::uint64_t{1} << 63;
  static constexpr std::uint64_t kWrittenLate = std::uint64_t{1} << 62;

  std::atomic<std::uint64_t> next;          // a Link; flagged: not the current record of its key
  std::atomic<std::uint64_t> version_word;  // provisional until settled (shard.hpp)
  std::uint32_t bits;
  Fingerprint request_hash;
  Owner owner;

  // Writes everything but `next`. `outside`: owned by the cell from now on.
  static Cell& make(void* at, const CellPlan& plan, const KeyRef& key, const Draft& draft,
                    char* outside);

  [[nodiscard]] std::uint32_t size_class() const { return bits >> CellBits::kClassAt & 7U; }
  [[nodiscard]] Status status() const {
    return static_cast<Status>(bits >> CellBits::kStatusAt & 3U);
  }
  [[nodiscard]] FailKind fail_kind() const {
    return static_cast<FailKind>(bits >> CellBits::kKindAt & 3U);
  }
  [[nodiscard]] bool tombstone() const { return has(CellBits::kTombstone); }
  [[nodiscard]] std::uint32_t attempt() const {
    return has(CellBits::kAttempt) ? get<std::uint32_t>(begins(CellBits::kAttempt)) : 1;
  }

  // Of a settled cell. acquire: pairs with the CAS in settle().
  [[nodiscard]] std::uint64_t version() const {
    return version_word.load(std::memory_order_acquire) & ~(kProvisional | kWrittenLate);
  }
  [[nodiscard]] Time updated() const;
  [[nodiscard]] Time created(Time written, std::uint64_t fence) const {
    if (has(CellBits::kFresh)) return written;
    return Time(Micros(has(CellBits::kCreated) ? get<std::int64_t>(begins(CellBits::kCreated))
                                               : static_cast<std::int64_t>(fence)));
  }
  [[nodiscard]] Time created() const { return created(updated(), fence(version())); }
  [[nodiscard]] std::uint64_t fence(std::uint64_t version) const {
    return has(CellBits::kFence) ? get<std::uint64_t>(begins(CellBits::kFence)) : version;
  }
  // processing: its lease; failed: when it may be retried.
  [[nodiscard]] Micros until_after() const {
    return Micros(has(CellBits::kUntil) ? get<std::int64_t>(begins(CellBits::kUntil)) : 0);
  }
  [[nodiscard]] Micros keep() const { return Micros(get<std::int64_t>(kKeepAt)); }
  [[nodiscard]] Time expires_at() const { return later(updated(), keep()); }

  // Of a cell made by an insert. planned: the time it has unless settling finds it too early.
  [[nodiscard]] Time planned() const;
  [[nodiscard]] std::atomic<std::int64_t>& late() const;

  [[nodiscard]] std::size_t name_bytes() const;
  [[nodiscard]] KeyRef key() const;
  [[nodiscard]] bool is(const KeyRef& other) const;
  [[nodiscard]] std::string_view result() const;
  [[nodiscard]] char* outside() const {
    return has(CellBits::kOutside) ? get<char*>(begins(CellBits::kOutside)) : nullptr;
  }
  [[nodiscard]] std::size_t outside_bytes() const {
    return has(CellBits::kOutside) ? result_bytes() : 0;
  }
  [[nodiscard]] std::int64_t bytes() const {
    return static_cast<std::int64_t>(class_bytes(size_class()) + outside_bytes());
  }

 private:
  friend struct CellPlan;
  static constexpr std::size_t kKeepAt = 68;  // where the head ends

  [[nodiscard]] bool has(std::uint32_t what) const { return (bits & what) != 0; }
  // Where each field begins: behind those before it that are there. Looked up, because a replay
  // needs half a dozen of them.
  static constexpr std::size_t kFieldsAt = kKeepAt + 8;
  static constexpr std::array<std::uint8_t, 512> kFieldEnds = [] {
    std::array<std::uint8_t, 512> ends{};
    for (std::size_t fields = 0; fields < ends.size(); ++fields) {
      std::size_t end = kFieldsAt;
      for (std::size_t i = 0; i < CellBits::kFieldBytes.size(); ++i)
        end += (fields >> i & 1U) != 0 ? CellBits::kFieldBytes[i] : 0;
      ends[fields] = static_cast<std::uint8_t>(end);
    }
    return ends;
  }();
  // The end of the fields below `field`, or of all of them.
  [[nodiscard]] static std::size_t ends_at(std::uint32_t bits) {
    return kFieldEnds[bits >> CellBits::kFieldsAt & 0x1FFU];
  }
  [[nodiscard]] std::size_t begins(std::uint32_t field) const {
    return ends_at(bits & (field - 1));
  }
  [[nodiscard]] std::size_t text_at() const { return ends_at(bits); }

  [[nodiscard]] std::uint32_t result_bytes() const {
    return has(CellBits::kResult) ? get<std::uint32_t>(begins(CellBits::kResult)) : 0;
  }
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

inline std::size_t Cell::name_bytes() const {
  const std::size_t key = bits & 0xFFU;
  if (!has(CellBits::kScope)) return key;
  return key + get<std::uint8_t>(begins(CellBits::kScope)) +
         get<std::uint8_t>(begins(CellBits::kScope) + 1);
}

inline KeyRef Cell::key() const {
  const char* text = at(text_at());
  if (!has(CellBits::kScope)) return {{}, {}, {text, bits & 0xFFU}};
  const std::size_t tenant = get<std::uint8_t>(begins(CellBits::kScope));
  const std::size_t biz_type = get<std::uint8_t>(begins(CellBits::kScope) + 1);
  return {{text, tenant}, {text + tenant, biz_type}, {text + tenant + biz_type, bits & 0xFFU}};
}

// Without a call, and left at the first difference: most keys are some dozens of bytes.
[[nodiscard]] inline bool same_bytes(const char* a, const char* b, std::size_t count) {
  const auto differ = [&](std::size_t at) {
    std::array<std::uint64_t, 2> x;
    std::array<std::uint64_t, 2> y;
    std::memcpy(x.data(), a + at, 16);
    std::memcpy(y.data(), b + at, 16);
    return ((x[0] ^ y[0]) | (x[1] ^ y[1])) != 0;
  };
  if (count < 16) return std::memcmp(a, b, count) == 0;
  for (std::size_t at = 0; at + 16 < count; at += 16)
    if (differ(at)) return false;
  return !differ(count - 16);
}

inline bool Cell::is(const KeyRef& other) const {
  if (has(CellBits::kScope)) return key() == other;
  return other.key.size() == (bits & 0xFFU) && other.tenant.empty() && other.biz_type.empty() &&
         same_bytes(at(text_at()), other.key.data(), other.key.size());
}

inline std::string_view Cell::result() const {
  const char* const apart = outside();
  return {apart != nullptr ? apart : at(text_at() + name_bytes()), result_bytes()};
}

inline Time Cell::planned() const {
  const auto by_version = static_cast<std::int64_t>(version());
  if ((bits & (CellBits::kWritten | CellBits::kBefore)) == 0) return Time(Micros(by_version));
  if (has(CellBits::kWritten)) return Time(Micros(get<std::int64_t>(begins(CellBits::kWritten))));
  return Time(Micros(by_version - get<std::uint16_t>(begins(CellBits::kBefore))));
}

inline std::atomic<std::int64_t>& Cell::late() const {
  const std::size_t inside = has(CellBits::kOutside) ? 0 : result_bytes();
  const std::size_t end = (text_at() + name_bytes() + inside + 7) & ~std::size_t{7};
  return *reinterpret_cast<std::atomic<std::int64_t>*>(const_cast<char*>(at(end)));
}

inline Time Cell::updated() const {
  // acquire: pairs with the CAS in settle(), which `late` was set before
  if ((version_word.load(std::memory_order_acquire) & kWrittenLate) != 0)
    return Time(Micros(late().load(std::memory_order_relaxed)));
  return planned();
}

}  // namespace idem::memory
