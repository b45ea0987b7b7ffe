#include "load/free_store.hpp"

namespace idem::bench {
namespace {

constexpr Time kNow{std::chrono::hours(1)};

template <class Op>
void accept(Op& op, std::uint64_t version) {
  op.answer.state = Answer::State::written;
  op.answer.now = kNow;
  Record& held = op.answer.held;
  held.request_hash = op.draft.request_hash;
  held.owner = op.draft.owner;
  held.version = version;
  held.fence = op.draft.fence == 0 ? version : op.draft.fence;
  held.attempt = op.draft.attempt;
  held.status = op.draft.status;
  held.lease_until = kNow + op.draft.lease;
  held.expires_at = kNow + op.draft.keep;
}

}  // namespace

FreeStore::FreeStore() {
  capabilities_.backend = "free";
  capabilities_.result_bytes_max = std::uint64_t{1} << 30U;
}

void FreeStore::insert(std::span<Insert> ops) {
  for (Insert& op : ops) accept(op, 1);
}

void FreeStore::replace(std::span<Replace> ops) {
  for (Replace& op : ops) accept(op, op.expected + 1);
}

void FreeStore::load(std::span<Load> ops) {
  for (Load& op : ops) op.answer = {Answer::State::absent, kNow, {}, {}};
}

void FreeStore::remove(std::span<Remove> ops) {
  for (Remove& op : ops) op.answer = {Answer::State::absent, kNow, {}, {}};
}

result<std::uint64_t> FreeStore::sweep(std::size_t) { return std::uint64_t{0}; }
result<Page> FreeStore::list(const ListQuery&) { return Page{{}, kNow, {}}; }
result<StoreStats> FreeStore::stats() { return StoreStats{}; }

}  // namespace idem::bench
