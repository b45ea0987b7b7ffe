#include "load/ledger.hpp"

#include <fmt/core.h>

namespace idem::bench {
namespace {

// Nothing is read before the clients were joined: no order is needed between the counters.
constexpr auto kRelaxed = std::memory_order_relaxed;

}  // namespace

void Checks::add(const Checks& other) {
  keys += other.keys;
  once += other.once;
  executed_twice += other.executed_twice;
  never_executed += other.never_executed;
  replays += other.replays;
  wrong_replays += other.wrong_replays;
  lost_records += other.lost_records;
  left_processing += other.left_processing;
  refused_completes += other.refused_completes;
  unsettled += other.unsettled;
}

bool Checks::hold() const { return violations().empty(); }

std::vector<std::string> Checks::violations() const {
  std::vector<std::string> out;
  const auto note = [&](std::uint64_t count, const char* one, const char* many, const char* what) {
    if (count > 0) out.push_back(fmt::format("{} {} {}", count, count == 1 ? one : many, what));
  };
  note(executed_twice, "key", "keys", "executed twice");
  note(never_executed, "key", "keys", "never executed, though answered as running or done");
  note(wrong_replays, "replay", "replays", "not equal to the first result");
  note(lost_records, "record", "records", "lost after it was completed");
  note(left_processing, "key", "keys", "left processing");
  note(refused_completes, "complete", "completes", "refused to the rightful owner");
  return out;
}

void Ledger::claimed(std::uint32_t key, ClaimKind kind) {
  Account& account = accounts_[key];
  account.runs.fetch_add(1, kRelaxed);
  if (kind == ClaimKind::fresh) account.fresh.fetch_add(1, kRelaxed);
}

void Ledger::crashed(std::uint32_t key) { accounts_[key].excused.fetch_add(1, kRelaxed); }

void Ledger::completed(std::uint32_t key, std::uint64_t fence) {
  accounts_[key].completions.fetch_add(1, kRelaxed);
  accounts_[key].completed_fence.store(fence, kRelaxed);
}

void Ledger::lost(std::uint32_t key) { accounts_[key].excused.fetch_add(1, kRelaxed); }

void Ledger::refused(std::uint32_t key) { accounts_[key].refused.fetch_add(1, kRelaxed); }

void Ledger::in_progress(std::uint32_t key) {
  // Read first: on a hot key a write by every loser would measure the ledger's cache line.
  if (!accounts_[key].answered.load(kRelaxed)) accounts_[key].answered.store(true, kRelaxed);
}

void Ledger::replayed(std::uint32_t key, std::uint64_t fence) {
  Account& account = accounts_[key];
  if (fence == 0) {
    account.strange.fetch_add(1, kRelaxed);
    return;
  }
  std::uint64_t first = account.replayed_fence.load(kRelaxed);
  if (first == 0 && account.replayed_fence.compare_exchange_strong(first, fence, kRelaxed)) return;
  if (first != fence) account.strange.fetch_add(1, kRelaxed);
}

void Ledger::unsettled(std::uint32_t key) { accounts_[key].unsettled.fetch_add(1, kRelaxed); }

bool Ledger::touched(std::uint32_t key) const {
  const Account& account = accounts_[key];
  return account.runs.load(kRelaxed) > 0 || account.unsettled.load(kRelaxed) > 0 ||
         account.answered.load(kRelaxed) || account.strange.load(kRelaxed) > 0 ||
         account.replayed_fence.load(kRelaxed) != 0;
}

std::uint64_t Ledger::completed_fence(std::uint32_t key) const {
  return accounts_[key].completed_fence.load(kRelaxed);
}

void Ledger::audit(std::uint32_t key, Held held, Checks& into) const {
  const Account& account = accounts_[key];
  const std::uint32_t runs = account.runs.load(kRelaxed);
  const std::uint32_t excused = account.excused.load(kRelaxed);
  const std::uint32_t completions = account.completions.load(kRelaxed);
  const std::uint32_t unsettled = account.unsettled.load(kRelaxed);
  const std::uint64_t fence = account.completed_fence.load(kRelaxed);
  const std::uint64_t replayed = account.replayed_fence.load(kRelaxed);
  ++into.keys;
  into.refused_completes += account.refused.load(kRelaxed);
  into.wrong_replays += account.strange.load(kRelaxed);
  if (replayed != 0 && fence != 0 && replayed != fence) ++into.wrong_replays;

  // A run is excused by a crash, a lost lease or a call whose effect is unknown; one more is right.
  if (account.fresh.load(kRelaxed) > 1 || runs > 1 + excused + unsettled || completions > 1) {
    ++into.executed_twice;
  } else if (unsettled > 0) {
    ++into.unsettled;
    return;
  } else if (runs == 0) {
    ++into.never_executed;
  } else if (completions == 1) {
    ++into.once;
  }
  if (completions == 0) {
    if (held == Held::processing && account.refused.load(kRelaxed) == 0) ++into.left_processing;
    return;
  }
  if (held == Held::processing) {
    ++into.left_processing;
  } else if (held != Held::first_result) {
    ++into.lost_records;
  }
}

}  // namespace idem::bench
