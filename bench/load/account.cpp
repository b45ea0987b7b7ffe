#include "load/account.hpp"

namespace idem::bench {
namespace {

constexpr int kCompleteTries = 5;

template <class... F>
struct Match : F... {
  using F::operator()...;
};
template <class... F>
Match(F...) -> Match<F...>;

}  // namespace

Account::Account(const RoundTask& task, Ledger& ledger)
    : task_(task), ledger_(ledger), lease_(nanos(task.workload->lease)) {}

void Account::note_latency(Role role, Nanos sent, Nanos answered, Nanos due) {
  const auto index = static_cast<std::size_t>(role);
  result_.uncorrected[index].record(answered - sent);
  if (due != 0) result_.corrected[index].record(answered - due);
}

void Account::note_error(const Error& error) {
  ++result_.errors[std::string(to_string(error.code))];
}

Account::Sent Account::send(const Operation& operation, Nanos due) {
  ++result_.attempted;
  const Nanos now = stopwatch();
  if (due != 0) result_.lag.record(now - due);
  return {operation, due, now};
}

std::optional<Lease> Account::claimed(const Sent& sent, result<ClaimOutcome> outcome) {
  const Nanos answered = stopwatch();
  const std::uint32_t key = sent.operation.key;
  if (!outcome) {
    note_error(outcome.error());
    if (outcome.error().code == errc::unknown) ledger_.unsettled(key);
    return std::nullopt;
  }
  std::optional<Lease> won;
  const bool over = std::visit(
      Match{[&](Claimed& claimed) {
              const ClaimKind kind = claimed.lease.kind();
              note_latency(kind == ClaimKind::takeover ? Role::takeover : Role::winner, sent.at,
                           answered, sent.due);
              ledger_.claimed(key, kind);
              if (!sent.operation.crash) {
                won.emplace(std::move(claimed.lease));
                return false;
              }
              ++result_.crashes;
              ledger_.crashed(key);
              crashed_.push_back({key, answered + lease_});
              return true;
            },
            [&](const Replay& replay) {
              note_latency(Role::replay, sent.at, answered, sent.due);
              ledger_.replayed(key, task_.payload->fence_of(key, replay.result).value_or(0));
              return true;
            },
            [&](const InProgress&) {
              note_latency(Role::in_progress, sent.at, answered, sent.due);
              ledger_.in_progress(key);
              return true;
            },
            [&](const auto&) {
              // The plan uses one fingerprint a key, never fails and sets no cap: no other outcome
              // is right.
              ledger_.replayed(key, 0);
              return false;
            }},
      *outcome);
  if (over) ++result_.succeeded;
  return won;
}

const std::string& Account::result_for(const Sent& sent, const Lease& lease) {
  task_.payload->write(sent.operation.key, lease.fence(), bytes_);
  return bytes_;
}

bool Account::completed(const Sent& sent, const Lease& lease,
                        const result<CompleteOutcome>& outcome, Nanos at, int tries) {
  const Nanos answered = stopwatch();
  const std::uint32_t key = sent.operation.key;
  if (!outcome) {
    note_error(outcome.error());
    if (tries < kCompleteTries) return false;
    ledger_.unsettled(key);
    return true;
  }
  note_latency(Role::complete, at, answered, 0);
  if (std::holds_alternative<Completed>(*outcome)) {
    ledger_.completed(key, lease.fence());
    ++result_.succeeded;
  } else if (std::holds_alternative<Lost>(*outcome) && answered - sent.at >= lease_) {
    ledger_.lost(key);
    ++result_.succeeded;
  } else {
    ledger_.refused(key);
  }
  return true;
}

std::optional<Operation> Account::lapsed() {
  // Leases are all of one length: the oldest crash lapses first.
  if (crashed_.empty() || crashed_.front().lapses > stopwatch()) return std::nullopt;
  const Operation again{crashed_.front().key, false};
  crashed_.pop_front();
  return again;
}

std::deque<Account::Crashed> Account::take_crashed() {
  std::deque<Crashed> taken;
  taken.swap(crashed_);
  return taken;
}

void Account::wait_again(std::uint32_t key) { crashed_.push_back({key, stopwatch() + lease_}); }

}  // namespace idem::bench
