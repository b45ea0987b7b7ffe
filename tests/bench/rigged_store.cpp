#include "rigged_store.hpp"

#include "load/stopwatch.hpp"

namespace idem::bench {
namespace {

constexpr Micros kStall = std::chrono::seconds(1);
constexpr Micros kSlow = std::chrono::milliseconds(1);

template <class Op>
void refuse(std::span<Op> ops) {
  for (Op& op : ops) {
    op.answer.state = Answer::State::failed;
    op.answer.error = fail(errc::unavailable, "rigged");
  }
}

}  // namespace

bool RiggedStore::every(std::uint64_t nth) { return (turns_.fetch_add(1) + 1) % nth == 0; }

void RiggedStore::insert(std::span<Insert> ops) {
  if (rig_ == Rig::fails_half && every(2)) return refuse(ops);
  if (rig_ == Rig::slow) clock_.pause(kSlow);
  if (rig_ == Rig::stalls) {
    const std::lock_guard guard(stall_);
    if (turns_.fetch_add(1) == 500) clock_.pause(kStall);
  }
  behind().insert(ops);
  for (Insert& op : ops) {
    if (op.answer.state != Answer::State::stands) continue;
    if (rig_ == Rig::runs_twice && every(50)) {
      op.answer.state = Answer::State::written;
      op.answer.held.status = Status::processing;
      op.answer.held.owner = op.draft.owner;
      op.answer.held.fence = ++op.answer.held.version;
      op.answer.held.lease_until = op.answer.now + op.draft.lease;
    }
    if (rig_ == Rig::replays_wrong && op.answer.held.status == Status::success && every(50))
      op.answer.held.result.back() = static_cast<char>(op.answer.held.result.back() ^ 1);
  }
}

void RiggedStore::replace(std::span<Replace> ops) {
  if (rig_ == Rig::fails_half && every(2)) return refuse(ops);
  if (rig_ == Rig::never_completes && every(50)) {
    for (Replace& op : ops) {
      Load load{op.key, {}};
      behind().load({&load, 1});
      op.answer = load.answer;
      op.answer.state = Answer::State::written;
      op.answer.held.status = op.draft.status;
    }
    return;
  }
  behind().replace(ops);
  for (Replace& op : ops) {
    if (rig_ != Rig::loses_records || op.answer.state != Answer::State::written || !every(50))
      continue;
    Remove remove{op.key, op.answer.held.version, {}};
    behind().remove({&remove, 1});
  }
}

}  // namespace idem::bench
