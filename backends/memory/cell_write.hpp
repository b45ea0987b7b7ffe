// How a record becomes a cell: its plan, then its bytes.
//
// Inline, and for the shapes most records have with every place known to the compiler: a claim or a
// completion is some hundreds of instructions, and those of copying field by field were half of
// them.
#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstring>
#include <new>

#include "cell.hpp"

namespace idem::memory {

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

 private:
  // A flag of `bits` if it holds, without a branch.
  [[nodiscard]] static constexpr std::uint32_t flag_if(bool holds, std::uint32_t flag) {
    return std::uint32_t{holds} << std::countr_zero(flag);
  }
  [[nodiscard]] static std::uint32_t bits_of(const KeyRef& key, const Draft& draft);
  [[nodiscard]] static std::uint32_t usual_bits(const KeyRef& key, const Draft& draft);
  // Whether an instant can be told from a version that was made from it.
  [[nodiscard]] static bool is_told_by(Time at, std::uint64_t version) {
    return at.time_since_epoch().count() == static_cast<std::int64_t>(version);
  }
  [[nodiscard]] static std::uint32_t bits_of_time(Time at, std::uint64_t version);
};

[[gnu::noinline]] inline std::uint32_t CellPlan::bits_of(const KeyRef& key, const Draft& draft) {
  return static_cast<std::uint32_t>(key.key.size()) |
         flag_if(draft.status != Status::success, CellBits::kUntil) |
         flag_if(draft.fence != 0, CellBits::kFence) |
         flag_if(draft.attempt != 1, CellBits::kAttempt) |
         flag_if(!draft.result.empty(), CellBits::kResult) |
         flag_if((key.tenant.size() | key.biz_type.size()) != 0, CellBits::kScope) |
         flag_if(draft.tombstone, CellBits::kTombstone) |
         static_cast<std::uint32_t>(draft.status) << CellBits::kStatusAt |
         static_cast<std::uint32_t>(draft.fail_kind) << CellBits::kKindAt;
}

// How the time of writing is told: by the version, as a little before it, or in full.
inline std::uint32_t CellPlan::bits_of_time(Time at, std::uint64_t version) {
  if (is_told_by(at, version)) [[likely]]
    return 0;
  const std::int64_t before = static_cast<std::int64_t>(version) - at.time_since_epoch().count();
  return before > 0 && before <= 0xFFFF ? CellBits::kBefore : CellBits::kWritten;
}

[[gnu::always_inline]] inline void CellPlan::fit(const KeyRef& key, const Draft& draft) {
  const std::size_t name = key.tenant.size() + key.biz_type.size() + key.key.size();
  const auto total = [&](std::size_t inside) {
    const std::size_t text = CellFields::ends_at(bits) + name + inside;
    return (bits & CellBits::kLate) != 0 ? ((text + 7) & ~std::size_t{7}) + 8 : text;
  };
  size_class = class_for(total(draft.result.size()));
  if (size_class == 0) [[unlikely]] {
    bits |= CellBits::kOutside;
    outside_bytes = static_cast<std::uint32_t>(draft.result.size());
    size_class = class_for(total(0));
  }
  bits |= size_class << CellBits::kClassAt;
}

// What a draft is, but for its times and texts, in one word.
[[nodiscard]] inline std::uint64_t kind_of(const Draft& draft) {
  std::uint64_t word = 0;
  std::memcpy(&word, reinterpret_cast<const char*>(&draft) + offsetof(Draft, attempt), 8);
  return word;
}
[[nodiscard]] constexpr std::uint64_t kind_of(Status status, bool fresh) {
  return 1 | std::uint64_t{static_cast<std::uint8_t>(status)} << 32 | std::uint64_t{fresh} << 48;
}
static_assert(offsetof(Draft, status) == offsetof(Draft, attempt) + 4 &&
              offsetof(Draft, fail_kind) == offsetof(Draft, attempt) + 5 &&
              offsetof(Draft, fresh) == offsetof(Draft, attempt) + 6 &&
              offsetof(Draft, tombstone) == offsetof(Draft, attempt) + 7);
static_assert(std::endian::native == std::endian::little);

// The plan's bits of what most records are; 0: of another one.
[[gnu::always_inline]] inline std::uint32_t CellPlan::usual_bits(const KeyRef& key,
                                                                 const Draft& draft) {
  const std::uint64_t kind = kind_of(draft);
  if ((key.tenant.size() | key.biz_type.size()) != 0) return 0;
  const auto count = static_cast<std::uint32_t>(key.key.size());
  if (kind == kind_of(Status::processing, true) && (draft.fence | draft.result.size()) == 0)
    return CellBits::kOfClaim | CellBits::kFresh | count;
  if (kind == kind_of(Status::success, false) && draft.fence != 0 && !draft.result.empty())
    return CellBits::kOfFinished | count | std::uint32_t{1} << CellBits::kStatusAt;
  return 0;
}

[[gnu::always_inline]] inline CellPlan CellPlan::of_insert(const KeyRef& key, const Draft& draft,
                                                           Time now) {
  CellPlan plan;
  plan.version = std::max(micros_of(now), draft.fence);
  plan.written = plan.created = now;
  plan.bits = usual_bits(key, draft);
  if (plan.bits == 0) [[unlikely]]
    plan.bits = bits_of(key, draft);
  plan.bits |= CellBits::kLate | CellBits::kFresh;
  // Settling may change the version, so it cannot be told as a little before it.
  if (!is_told_by(now, plan.version)) plan.bits |= CellBits::kWritten;
  plan.fit(key, draft);
  return plan;
}

[[gnu::always_inline]] inline CellPlan CellPlan::of_replace(const KeyRef& key, const Draft& draft,
                                                            Time now, std::uint64_t version,
                                                            Time created) {
  CellPlan plan;
  plan.version = version;
  plan.written = now;
  plan.created = created;
  plan.bits = usual_bits(key, draft);
  if (plan.bits == 0) [[unlikely]]
    plan.bits = bits_of(key, draft);
  if (draft.fresh)
    plan.bits |= CellBits::kFresh;
  else if (!is_told_by(created, draft.fence != 0 ? draft.fence : version))
    plan.bits |= CellBits::kCreated;
  plan.bits |= bits_of_time(now, version);
  plan.fit(key, draft);
  return plan;
}

// Writes a cell's fields one after the other. `shape`: which of them there are, and whether the
// record is settled late; the plan's, or a constant that it was compared with.
[[gnu::always_inline]] inline Cell& write_cell(void* at, std::uint32_t shape, const CellPlan& plan,
                                               const KeyRef& key, const Draft& draft,
                                               char* outside) {
  const auto has = [&](std::uint32_t what) { return (shape & what) != 0; };
  char* to = static_cast<char*>(at) + Cell::kKeepAt;
  const auto put = [&](auto value) {
    std::memcpy(to, &value, sizeof(value));
    to += sizeof(value);
  };
  const auto put_text = [&](std::string_view text) {
    copy_bytes(to, text.data(), text.size());
    to += text.size();
  };
  Cell& cell = *static_cast<Cell*>(at);
  new (&cell.next) std::atomic<std::uint64_t>;
  new (&cell.version_word) std::atomic<std::uint64_t>(
      plan.version | (has(CellBits::kLate) ? Cell::kProvisional : std::uint64_t{0}));
  cell.bits = plan.bits;
  cell.request_hash = draft.request_hash;
  cell.owner = draft.owner;
  put(draft.keep.count());
  if (has(CellBits::kResult)) put(static_cast<std::uint32_t>(draft.result.size()));
  if (has(CellBits::kAttempt)) put(draft.attempt);
  if (has(CellBits::kUntil))
    put((draft.status == Status::processing ? draft.lease : draft.retry_after).count());
  if (has(CellBits::kFence)) put(draft.fence);
  if (has(CellBits::kCreated)) put(plan.created.time_since_epoch().count());
  if (has(CellBits::kWritten)) put(plan.written.time_since_epoch().count());
  if (has(CellBits::kOutside)) put(outside);
  if (has(CellBits::kBefore)) {
    const auto written = static_cast<std::uint64_t>(plan.written.time_since_epoch().count());
    put(static_cast<std::uint16_t>(plan.version - written));
  }
  if (has(CellBits::kScope)) {
    put(static_cast<std::uint8_t>(key.tenant.size()));
    put(static_cast<std::uint8_t>(key.biz_type.size()));
    put_text(key.tenant);
    put_text(key.biz_type);
  }
  put_text(key.key);
  if (has(CellBits::kOutside)) std::memcpy(outside, draft.result.data(), draft.result.size());
  if (has(CellBits::kResult) && !has(CellBits::kOutside)) put_text(draft.result);
  if (has(CellBits::kLate)) {
    const auto end = static_cast<std::size_t>(to - static_cast<char*>(at));
    new (static_cast<char*>(at) + ((end + 7) & ~std::size_t{7}))
        std::atomic<std::int64_t>(Cell::kUnsettled);
  }
  return cell;
}

[[gnu::noinline]] inline Cell& make_cell_any(void* at, const CellPlan& plan, const KeyRef& key,
                                             const Draft& draft, char* outside) {
  return write_cell(at, plan.bits, plan, key, draft, outside);
}

// Writes everything but `next`. `outside`: owned by the cell from now on.
[[gnu::always_inline]] inline Cell& make_cell(void* at, const CellPlan& plan, const KeyRef& key,
                                              const Draft& draft, char* outside) {
  const std::uint32_t shape = plan.bits & (CellBits::kFields | CellBits::kLate);
  constexpr std::uint32_t kClaim = CellBits::kOfClaim | CellBits::kLate;
  if (shape == kClaim) return write_cell(at, kClaim, plan, key, draft, outside);
  if (shape == CellBits::kOfFinished)
    return write_cell(at, CellBits::kOfFinished, plan, key, draft, outside);
  return make_cell_any(at, plan, key, draft, outside);
}

namespace layout {
constexpr std::size_t kHeadMost = Cell::kKeepAt + 5 * 8 + 2 * 4 + 8 + 2 + 2;
static_assert(class_for(kHeadMost + kKeyBytesMax + kBizTypeBytesMax + kTenantBytesMax + 7 + 8) != 0,
              "every valid key lies inside its cell");
static_assert(offsetof(Cell, owner) + sizeof(Owner) == Cell::kKeepAt, "the head is as said");
static_assert(Cell::kKeepAt + 8 + 8 + 36 + 8 == 128, "a claim of a UUID fits two lines");
static_assert(Cell::kKeepAt + 8 + 8 + 4 + 2 + 36 + 64 <= 192, "with a result of 64 bytes, three");
}  // namespace layout

}  // namespace idem::memory
