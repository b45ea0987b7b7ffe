#include "load/client.hpp"

#include <algorithm>
#include <cmath>

namespace idem::bench {
namespace {

// A complete that the store refused to serve is repeated, as an application would.
constexpr int kCompleteTries = 5;
// A crashed key is given up on after so many leases.
constexpr int kRecoverTries = 20;

Nanos nanos(Micros d) { return d.count() * 1000; }

template <class... F>
struct Match : F... {
  using F::operator()...;
};
template <class... F>
Match(F...) -> Match<F...>;

}  // namespace

Client::Client(const RoundTask& task, IdempotencyService& service, Ledger& ledger,
               std::uint32_t number, const std::atomic<bool>& stop)
    : task_(task),
      service_(service),
      ledger_(ledger),
      number_(number),
      stop_(stop),
      lease_(nanos(task.workload->lease)) {}

void Client::work(Nanos start) {
  const Nanos end = start + nanos(task_.time);
  const Nanos cpu = thread_cpu();
  if (task_.workload->rate > 0) {
    open_loop(start, end);
  } else {
    closed_loop(start, end);
  }
  result_.elapsed = stopwatch() - start;
  result_.cpu = thread_cpu() - cpu;
}

void Client::closed_loop(Nanos start, Nanos end) {
  Nanos now = start;
  const auto& operations = task_.plan->operations;
  for (std::size_t i = number_; i < operations.size(); i += task_.clients) {
    if (now >= end || stop_.load(std::memory_order_relaxed)) break;
    if (!crashed_.empty()) recover_due();
    now = operate(operations[i], 0);
  }
}

void Client::open_loop(Nanos start, Nanos end) {
  const double gap = 1e9 / task_.workload->rate;
  const auto& operations = task_.plan->operations;
  for (std::size_t i = number_; i < operations.size(); i += task_.clients) {
    const Nanos due = start + static_cast<Nanos>(gap * static_cast<double>(i));
    if (due >= end || stop_.load(std::memory_order_relaxed)) break;
    ++result_.planned;
    // A store that cannot keep up must not lengthen the round without end.
    if (stopwatch() > end + (end - start)) continue;
    if (!crashed_.empty()) recover_due();
    wait_until(due);
    operate(operations[i], due);
  }
}

void Client::wait_until(Nanos at) {
  const Nanos left = at - stopwatch();
  if (left > 0) service_.clock().pause(Micros((left + 999) / 1000));
}

void Client::note_latency(Role role, Nanos sent, Nanos answered, Nanos due) {
  const auto index = static_cast<std::size_t>(role);
  result_.uncorrected[index].record(answered - sent);
  if (due != 0) result_.corrected[index].record(answered - due);
}

void Client::note_error(const Error& error) {
  ++result_.errors[std::string(to_string(error.code))];
}

Nanos Client::operate(const Operation& operation, Nanos due) {
  const std::uint32_t key = operation.key;
  ++result_.attempted;
  const Nanos sent = stopwatch();
  if (due != 0) result_.lag.record(sent - due);
  auto outcome = service_.claim((*task_.requests)[key]);
  const Nanos answered = stopwatch();
  if (!outcome) {
    note_error(outcome.error());
    if (outcome.error().code == errc::unknown) ledger_.unsettled(key);
    return answered;
  }
  const bool good = std::visit(
      Match{[&](Claimed& claimed) {
              const ClaimKind kind = claimed.lease.kind();
              const bool over = kind == ClaimKind::takeover;
              note_latency(over ? Role::takeover : Role::winner, sent, answered, due);
              ledger_.claimed(key, kind);
              if (operation.crash) {
                ++result_.crashes;
                ledger_.crashed(key);
                crashed_.push_back({key, answered + lease_});
                return true;
              }
              return finish(key, claimed.lease, sent);
            },
            [&](const Replay& replay) {
              note_latency(Role::replay, sent, answered, due);
              ledger_.replayed(key, task_.payload->fence_of(key, replay.result).value_or(0));
              return true;
            },
            [&](const InProgress&) {
              note_latency(Role::in_progress, sent, answered, due);
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
  if (good) ++result_.succeeded;
  return stopwatch();
}

bool Client::finish(std::uint32_t key, Lease& lease, Nanos claimed_at) {
  if (task_.workload->work > Micros(0)) service_.clock().pause(task_.workload->work);
  task_.payload->write(key, lease.fence(), bytes_);
  for (int tries = 0; tries < kCompleteTries; ++tries) {
    const Nanos sent = stopwatch();
    auto outcome = service_.complete(lease, bytes_);
    if (outcome) {
      note_latency(Role::complete, sent, stopwatch(), 0);
      return settle(key, lease, *outcome, claimed_at);
    }
    note_error(outcome.error());
  }
  ledger_.unsettled(key);
  return false;
}

bool Client::settle(std::uint32_t key, Lease& lease, const CompleteOutcome& outcome,
                    Nanos claimed_at) {
  if (std::holds_alternative<Completed>(outcome)) {
    ledger_.completed(key, lease.fence());
    return true;
  }
  if (std::holds_alternative<Lost>(outcome) && stopwatch() - claimed_at >= lease_) {
    ledger_.lost(key);
    return true;
  }
  ledger_.refused(key);
  return false;
}

void Client::recover_due() {
  // Leases are all of one length: the oldest crash lapses first.
  while (!crashed_.empty() && crashed_.front().lapses <= stopwatch()) {
    const std::uint32_t key = crashed_.front().key;
    crashed_.pop_front();
    operate({key, false}, 0);
  }
}

void Client::recover_all() {
  const std::uint64_t attempted = result_.attempted;
  const std::uint64_t succeeded = result_.succeeded;
  for (int tries = 0; tries < kRecoverTries && !crashed_.empty(); ++tries) {
    std::deque<Crashed> left;
    left.swap(crashed_);
    for (const Crashed& crash : left) {
      wait_until(crash.lapses);
      const std::uint64_t before =
          result_.uncorrected[static_cast<std::size_t>(Role::in_progress)].count();
      operate({crash.key, false}, 0);
      const bool waits =
          result_.uncorrected[static_cast<std::size_t>(Role::in_progress)].count() > before;
      // Somebody else took over and is at work, or crashed in turn.
      if (waits) crashed_.push_back({crash.key, stopwatch() + lease_});
    }
  }
  result_.attempted = attempted;
  result_.succeeded = succeeded;
}

}  // namespace idem::bench
