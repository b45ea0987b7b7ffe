#include "load/client.hpp"

#include "load/turns.hpp"

namespace idem::bench {
namespace {

// A crashed key is given up on after so many leases.
constexpr int kRecoverTries = 20;

}  // namespace

Client::Client(const RoundTask& task, IdempotencyService& service, Ledger& ledger,
               std::uint32_t number, const std::atomic<bool>& stop)
    : task_(task), service_(service), number_(number), stop_(stop), account_(task, ledger) {}

void Client::work(Nanos start) {
  const Nanos cpu = thread_cpu();
  Turns turns(task_, number_, start, stop_);
  while (const auto turn = turns.next(result())) {
    while (const auto again = account_.lapsed()) operate(*again, 0);
    wait_until(turn->due);
    operate(turn->operation, turn->due);
  }
  result().elapsed = stopwatch() - start;
  result().cpu = thread_cpu() - cpu;
}

void Client::wait_until(Nanos at) {
  const Nanos left = at == 0 ? 0 : at - stopwatch();
  if (left > 0) service_.clock().pause(Micros((left + 999) / 1000));
}

void Client::operate(const Operation& operation, Nanos due) {
  const Account::Sent sent = account_.send(operation, due);
  auto lease = account_.claimed(sent, service_.claim(account_.request_for(sent)));
  if (!lease) return;
  if (task_.workload->work > Micros(0)) service_.clock().pause(task_.workload->work);
  const std::string& bytes = account_.result_for(sent, *lease);
  for (int tries = 1;; ++tries) {
    const Nanos at = stopwatch();
    if (account_.completed(sent, *lease, service_.complete(*lease, bytes), at, tries)) return;
  }
}

void Client::recover_all() {
  const std::uint64_t attempted = result().attempted;
  const std::uint64_t succeeded = result().succeeded;
  const Histogram& turned_away = result().uncorrected[static_cast<std::size_t>(Role::in_progress)];
  for (int tries = 0; tries < kRecoverTries; ++tries) {
    const auto crashed = account_.take_crashed();
    for (const Account::Crashed& crash : crashed) {
      wait_until(crash.lapses);
      const std::uint64_t before = turned_away.count();
      operate({crash.key, false}, 0);
      if (turned_away.count() > before) account_.wait_again(crash.key);
    }
  }
  result().attempted = attempted;
  result().succeeded = succeeded;
}

}  // namespace idem::bench
