#include "load/round.hpp"

#include <algorithm>
#include <barrier>
#include <memory>
#include <thread>

#include "idem/service.hpp"
#include "load/async_clients.hpp"
#include "load/client.hpp"

namespace idem::bench {
namespace {

// Items in one call of the audit.
constexpr std::size_t kAuditBatch = 256;

ServiceOptions service_options(const Workload& workload, Clock& clock) {
  ServiceOptions options;
  options.policy.lease = workload.lease;
  options.policy.stuck_after = std::max<Duration>(options.policy.stuck_after, workload.lease);
  options.policy.result_ttl = std::max<Duration>(options.policy.result_ttl, workload.lease);
  options.clock = &clock;
  return options;
}

Ledger::Held held_by(const Answer& answer, const Ledger& ledger, const Payload& payload,
                     std::uint32_t key) {
  if (answer.state != Answer::State::stands) return Ledger::Held::nothing;
  if (answer.held.status == Status::processing) return Ledger::Held::processing;
  const auto fence = payload.fence_of(key, answer.held.result);
  const bool first =
      answer.held.status == Status::success && fence && *fence == ledger.completed_fence(key);
  return first ? Ledger::Held::first_result : Ledger::Held::other;
}

void remove_all(IdempotencyStore& store, std::span<const Load> loads) {
  std::vector<Remove> removes;
  for (const Load& load : loads) {
    if (load.answer.state == Answer::State::stands)
      removes.push_back({load.key, load.answer.held.version, {}});
  }
  if (!removes.empty()) store.remove(removes);
}

// Reads back every key that was touched.
void audit(const RoundTask& task, IdempotencyStore& store, const Ledger& ledger, Checks& checks) {
  std::vector<std::uint32_t> keys;
  std::vector<Load> loads;
  const auto flush = [&] {
    loads.resize(keys.size());
    for (std::size_t i = 0; i < keys.size(); ++i)
      loads[i].key = KeyRef((*task.requests)[keys[i]].key);
    store.load(loads);
    for (std::size_t i = 0; i < keys.size(); ++i) {
      if (task.audit)
        ledger.audit(keys[i], held_by(loads[i].answer, ledger, *task.payload, keys[i]), checks);
    }
    if (task.remove_after) remove_all(store, loads);
    keys.clear();
  };
  for (std::uint32_t key = 0; key < ledger.keys(); ++key) {
    if (ledger.touched(key)) keys.push_back(key);
    if (keys.size() == kAuditBatch) flush();
  }
  if (!keys.empty()) flush();
}

void work_in_threads(std::span<const std::unique_ptr<Client>> clients) {
  const auto count = static_cast<std::ptrdiff_t>(clients.size());
  Nanos start = 0;
  std::barrier gate(count, [&start]() noexcept { start = stopwatch(); });
  std::barrier worked(count);
  std::vector<std::thread> threads;
  for (const auto& client : clients) {
    threads.emplace_back([&gate, &worked, &start, &client] {
      gate.arrive_and_wait();
      client->work(start);
      worked.arrive_and_wait();  // what is recovered must not disturb those still timed
      client->recover_all();
    });
  }
  for (std::thread& thread : threads) thread.join();
}

}  // namespace

std::string_view to_string(Role role) noexcept {
  switch (role) {
    case Role::winner:
      return "winner";
    case Role::replay:
      return "replay";
    case Role::in_progress:
      return "in_progress";
    case Role::takeover:
      return "takeover";
    case Role::complete:
      return "complete";
    case Role::kCount:
      break;
  }
  return "";
}

void RoundResult::add(const RoundResult& other) {
  attempted += other.attempted;
  succeeded += other.succeeded;
  planned += other.planned;
  elapsed += other.elapsed;
  cpu += other.cpu;
  for (std::size_t i = 0; i < kRoles; ++i) {
    uncorrected[i].merge(other.uncorrected[i]);
    corrected[i].merge(other.corrected[i]);
  }
  lag.merge(other.lag);
  for (const auto& [code, count] : other.errors) errors[code] += count;
  crashes += other.crashes;
  checks.add(other.checks);
}

double RoundResult::rate() const {
  return elapsed == 0 ? 0 : static_cast<double>(succeeded) * 1e9 / static_cast<double>(elapsed);
}

std::uint64_t RoundResult::error_count() const {
  std::uint64_t sum = 0;
  for (const auto& [code, count] : errors) sum += count;
  return sum;
}

RoundResult run_round(const RoundTask& task, const StorePtr& store, Clock& clock,
                      const std::atomic<bool>& stop) {
  IdempotencyService service(store, service_options(*task.workload, clock));
  Ledger ledger(task.plan->keys);
  std::vector<std::unique_ptr<Client>> clients;
  for (std::uint32_t i = 0; i < task.clients; ++i)
    clients.push_back(std::make_unique<Client>(task, service, ledger, i, stop));

  if (task.workload->callers == Callers::async) {
    work_asynchronously(task, service, clients, stop);
    for (const auto& client : clients) client->recover_all();
  } else {
    work_in_threads(clients);
  }

  RoundResult total;
  Nanos longest = 0;
  for (const auto& client : clients) {
    longest = std::max(longest, client->result().elapsed);
    total.add(client->result());
  }
  // What is due over a second takes a second, however soon the last of it was answered.
  const double due =
      task.workload->rate > 0 ? static_cast<double>(total.planned) * 1e9 / task.workload->rate : 0;
  total.elapsed = std::max(longest, static_cast<Nanos>(due));
  if (task.audit || task.remove_after) audit(task, *store, ledger, total.checks);
  total.checks.replays = total.uncorrected[static_cast<std::size_t>(Role::replay)].count();
  return total;
}

}  // namespace idem::bench
