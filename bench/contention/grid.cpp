#include "contention/grid.hpp"

#include <algorithm>
#include <barrier>
#include <memory>
#include <thread>

namespace idem::bench {
namespace {

// What became of a key. A key with a failed claim is no evidence: that claim may have won.
struct Fate {
  std::atomic<std::uint32_t> won{0};
  std::atomic<bool> refused{false};
  std::atomic<bool> failed{false};
};

struct Shared {
  const GridTask& task;
  const std::atomic<bool>& stop;
  std::vector<Fate> fates;
  std::atomic<std::uint64_t> next{0};
};

void note(Heard heard, Fate& fate, Nanos took, GridResult& into) {
  switch (heard) {
    case Heard::won:
      ++into.won;
      into.winner.record(took);
      fate.won.fetch_add(1, std::memory_order_relaxed);
      return;
    case Heard::running:
    case Heard::done:
      ++(heard == Heard::running ? into.running : into.done);
      into.loser.record(took);
      fate.refused.store(true, std::memory_order_relaxed);
      return;
    case Heard::failed:
      ++into.failed;
      fate.failed.store(true, std::memory_order_relaxed);
      return;
  }
}

void ask(Asker& asker, Shared& shared, Nanos start, GridResult& into) {
  const Nanos end = start + shared.task.time.count() * 1000;
  Nanos now = start;
  while (now < end && !shared.stop.load(std::memory_order_relaxed)) {
    const std::uint32_t key =
        key_of_claim(shared.task.keys, shared.next.fetch_add(1, std::memory_order_relaxed));
    if (key >= shared.task.requests->size()) break;
    const Nanos sent = stopwatch();
    const Heard heard = asker.claim((*shared.task.requests)[key]);
    if (heard == Heard::won) asker.walk_away();
    now = stopwatch();
    note(heard, shared.fates[key], now - sent, into);
    if (heard == Heard::failed) into.trouble = asker.trouble();
  }
  into.elapsed = stopwatch() - start;
  into.costs = asker.take_costs();
}

}  // namespace

std::uint32_t key_of_claim(const KeyChoice& keys, std::uint64_t i) {
  if (keys.kind != KeyKind::hot) return static_cast<std::uint32_t>(i);
  const std::uint64_t together = std::uint64_t{keys.count} * kClaimsOfHotKey;
  return static_cast<std::uint32_t>(i / together * keys.count + i % keys.count);
}

double GridResult::rate() const {
  return elapsed == 0 ? 0 : static_cast<double>(answered()) * 1e9 / static_cast<double>(elapsed);
}

void GridResult::add(const GridResult& other) {
  won += other.won;
  running += other.running;
  done += other.done;
  failed += other.failed;
  elapsed += other.elapsed;
  winner.merge(other.winner);
  loser.merge(other.loser);
  costs.add(other.costs);
  server.add(other.server);
  won_twice += other.won_twice;
  nobody_won += other.nobody_won;
  if (trouble.empty()) trouble = other.trouble;
}

result<GridResult> run_grid(const GridTask& task, const Contender& contender,
                            const std::atomic<bool>& stop) {
  std::vector<std::unique_ptr<Asker>> askers;
  for (std::uint32_t i = 0; i < task.clients; ++i) {
    auto asker = contender.enter();
    if (!asker) return asker.error();
    askers.push_back(std::move(*asker));
  }
  Shared shared{task, stop, std::vector<Fate>(task.requests->size())};
  Nanos start = 0;
  std::barrier gate(static_cast<std::ptrdiff_t>(task.clients),
                    [&start]() noexcept { start = stopwatch(); });
  std::vector<GridResult> results(task.clients);
  std::vector<std::thread> threads;
  for (std::uint32_t i = 0; i < task.clients; ++i) {
    threads.emplace_back([&, i] {
      gate.arrive_and_wait();
      ask(*askers[i], shared, start, results[i]);
    });
  }
  for (std::thread& thread : threads) thread.join();

  GridResult total;
  Nanos longest = 0;
  for (const GridResult& one : results) {
    longest = std::max(longest, one.elapsed);
    total.add(one);
  }
  total.elapsed = longest;
  for (const Fate& fate : shared.fates) {
    const std::uint32_t won = fate.won.load();
    if (won > 1) ++total.won_twice;
    if (won == 0 && fate.refused.load() && !fate.failed.load()) ++total.nobody_won;
  }
  return total;
}

}  // namespace idem::bench
