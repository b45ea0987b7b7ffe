#include "cell.hpp"

#include <algorithm>
#include <new>

namespace idem::memory {
namespace {

[[nodiscard]] std::uint32_t bits_of(const KeyRef& key, const Draft& draft) {
  std::uint32_t bits = static_cast<std::uint32_t>(key.key.size());
  if (draft.status == Status::processing || draft.status == Status::failed)
    bits |= CellBits::kUntil;
  if (draft.fence != 0) bits |= CellBits::kFence;
  if (draft.attempt != 1) bits |= CellBits::kAttempt;
  if (!draft.result.empty()) bits |= CellBits::kResult;
  if (!key.tenant.empty() || !key.biz_type.empty()) bits |= CellBits::kScope;
  if (draft.tombstone) bits |= CellBits::kTombstone;
  bits |= static_cast<std::uint32_t>(draft.status) << CellBits::kStatusAt;
  bits |= static_cast<std::uint32_t>(draft.fail_kind) << CellBits::kKindAt;
  return bits;
}

// Whether an instant can be told from a version that was made from it.
[[nodiscard]] bool is_told_by(Time at, std::uint64_t version) {
  return at.time_since_epoch().count() == static_cast<std::int64_t>(version);
}

// How the time of writing is told: by the version, as a little before it, or in full.
[[nodiscard]] std::uint32_t bits_of_time(Time at, std::uint64_t version) {
  if (is_told_by(at, version)) return 0;
  const std::int64_t before = static_cast<std::int64_t>(version) - at.time_since_epoch().count();
  return before > 0 && before <= 0xFFFF ? CellBits::kBefore : CellBits::kWritten;
}

// One field after the other, through `to`.
template <class T>
void put(char*& to, T value) {
  std::memcpy(to, &value, sizeof(T));
  to += sizeof(T);
}
void put(char*& to, std::string_view text) {
  std::memcpy(to, text.data(), text.size());
  to += text.size();
}

}  // namespace

void CellPlan::fit(const KeyRef& key, const Draft& draft) {
  const std::size_t name = key.tenant.size() + key.biz_type.size() + key.key.size();
  const auto total = [&](std::size_t inside) {
    const std::size_t text = CellFields::ends_at(bits) + name + inside;
    return (bits & CellBits::kLate) != 0 ? ((text + 7) & ~std::size_t{7}) + 8 : text;
  };
  size_class = class_for(total(draft.result.size()));
  if (size_class == 0) {
    bits |= CellBits::kOutside;
    outside_bytes = static_cast<std::uint32_t>(draft.result.size());
    size_class = class_for(total(0));
  }
  bits |= size_class << CellBits::kClassAt;
}

CellPlan CellPlan::of_insert(const KeyRef& key, const Draft& draft, Time now) {
  CellPlan plan;
  plan.version = std::max(micros_of(now), draft.fence);
  plan.written = plan.created = now;
  plan.bits = bits_of(key, draft) | CellBits::kLate | CellBits::kFresh;
  // Settling may change the version, so it cannot be told as a little before it.
  if (!is_told_by(now, plan.version)) plan.bits |= CellBits::kWritten;
  plan.fit(key, draft);
  return plan;
}

CellPlan CellPlan::of_replace(const KeyRef& key, const Draft& draft, Time now,
                              std::uint64_t version, Time created) {
  CellPlan plan;
  plan.version = version;
  plan.written = now;
  plan.created = created;
  plan.bits = bits_of(key, draft);
  if (draft.fresh)
    plan.bits |= CellBits::kFresh;
  else if (!is_told_by(created, draft.fence != 0 ? draft.fence : version))
    plan.bits |= CellBits::kCreated;
  plan.bits |= bits_of_time(now, version);
  plan.fit(key, draft);
  return plan;
}

Cell& Cell::make(void* at, const CellPlan& plan, const KeyRef& key, const Draft& draft,
                 char* outside) {
  Cell& cell = *static_cast<Cell*>(at);
  new (&cell.next) std::atomic<std::uint64_t>;
  const bool late = (plan.bits & CellBits::kLate) != 0;
  new (&cell.version_word)
      std::atomic<std::uint64_t>(plan.version | (late ? kProvisional : std::uint64_t{0}));
  cell.bits = plan.bits;
  cell.request_hash = draft.request_hash;
  cell.owner = draft.owner;
  char* to = static_cast<char*>(at) + kKeepAt;
  put(to, draft.keep.count());
  if (cell.has(CellBits::kResult)) put(to, static_cast<std::uint32_t>(draft.result.size()));
  if (cell.has(CellBits::kAttempt)) put(to, draft.attempt);
  if (cell.has(CellBits::kUntil))
    put(to, (draft.status == Status::processing ? draft.lease : draft.retry_after).count());
  if (cell.has(CellBits::kFence)) put(to, draft.fence);
  if (cell.has(CellBits::kCreated)) put(to, plan.created.time_since_epoch().count());
  if (cell.has(CellBits::kWritten)) put(to, plan.written.time_since_epoch().count());
  if (cell.has(CellBits::kOutside)) put(to, outside);
  if (cell.has(CellBits::kBefore)) {
    const auto written = static_cast<std::uint64_t>(plan.written.time_since_epoch().count());
    put(to, static_cast<std::uint16_t>(plan.version - written));
  }
  if (cell.has(CellBits::kScope)) {
    put(to, static_cast<std::uint8_t>(key.tenant.size()));
    put(to, static_cast<std::uint8_t>(key.biz_type.size()));
    put(to, key.tenant);
    put(to, key.biz_type);
  }
  put(to, key.key);
  if (!draft.result.empty())
    std::memcpy(outside != nullptr ? outside : to, draft.result.data(), draft.result.size());
  if (late) new (&cell.late()) std::atomic<std::int64_t>(kUnsettled);
  return cell;
}

namespace {
constexpr std::size_t kHeadMost = 68 + 5 * 8 + 2 * 4 + 8 + 2 + 2;
static_assert(class_for(kHeadMost + kKeyBytesMax + kBizTypeBytesMax + kTenantBytesMax + 7 + 8) != 0,
              "every valid key lies inside its cell");
static_assert(offsetof(Cell, owner) + sizeof(Owner) == 68, "the head is as said");
static_assert(68 + 8 + 8 + 36 + 8 == 128, "a claim of a UUID fits two lines");
static_assert(68 + 8 + 8 + 4 + 2 + 36 + 64 <= 192, "with a result of 64 bytes, three");
}  // namespace

}  // namespace idem::memory
