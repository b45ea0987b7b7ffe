#include "contention/storm.hpp"

#include <algorithm>
#include <barrier>
#include <memory>
#include <thread>
#include <vector>

namespace idem::bench {
namespace {

// All that one storm's clients share.
struct Scene {
  std::atomic<std::uint32_t> winners{0};
  // Raised by the winner when its work is done, before it reports: who asks later is no duplicate
  // of a running request any more.
  std::atomic<bool> work_is_done{false};
};

std::string result_of(const Request& request) { return "result of " + request.key.key; }

class Storm {
 public:
  Storm(const StormTask& task, const Contender& contender, Clock& clock,
        const std::atomic<bool>& stop)
      : task_(task),
        contender_(contender),
        clock_(clock),
        stop_(stop),
        scenes_(task.storms),
        turn_(static_cast<std::ptrdiff_t>(task.clients), Decide{this}),
        results_(task.clients) {}

  result<void> enter() {
    for (std::uint32_t i = 0; i < task_.clients; ++i) {
      auto asker = contender_.enter();
      if (!asker) return asker.error();
      askers_.push_back(std::move(*asker));
    }
    return {};
  }

  StormResult run() {
    std::vector<std::thread> threads;
    for (std::uint32_t i = 0; i < task_.clients; ++i)
      threads.emplace_back([this, i] { take_part(*askers_[i], results_[i]); });
    for (std::thread& thread : threads) thread.join();
    StormResult total;
    for (const StormResult& one : results_) total.add(one);
    for (std::uint64_t i = 0; i < total.storms / task_.clients; ++i) {
      const std::uint32_t winners = scenes_[i].winners.load();
      if (winners > 1) ++total.won_twice;
      if (winners == 0) ++total.nobody_won;
    }
    total.storms /= task_.clients;  // each client counted its own
    return total;
  }

 private:
  void take_part(Asker& asker, StormResult& into) {
    for (std::uint32_t i = 0; i < task_.storms; ++i) {
      turn_.arrive_and_wait();
      if (stops_) break;
      ++into.storms;
      const Request& request = (*task_.requests)[i];
      const bool won = compete(asker, request, scenes_[i], into);
      turn_.arrive_and_wait();
      if (!won && contender_.keeps_result) look_again(asker, request, into);
    }
  }

  // Whether this client won.
  bool compete(Asker& asker, const Request& request, Scene& scene, StormResult& into) {
    const Nanos begun = stopwatch();
    Nanos sent = begun;
    do {
      sent = stopwatch();
      const Heard heard = asker.claim(request);
      const Nanos took = stopwatch() - sent;
      if (heard == Heard::won) {
        into.winner_claim.record(took);
        work(asker, request, scene, sent, into);
        return true;
      }
      into.loser_costs.add(asker.take_costs());
      if (heard == Heard::failed) {
        ++into.failed;
        into.trouble = asker.trouble();
      } else {
        into.loser.record(took);
        ++(heard == Heard::running ? into.refusals : into.results);
        if (heard == Heard::done) check(asker, request, into);
      }
      // Where nobody wins, nobody ends the storm either.
    } while (!scene.work_is_done.load(std::memory_order_acquire) && !stop_.load() &&
             into.failed < kFailuresMax && sent - begun < kPatience);
    return false;
  }

  void work(Asker& asker, const Request& request, Scene& scene, Nanos sent, StormResult& into) {
    scene.winners.fetch_add(1);
    const Nanos begun = stopwatch();
    clock_.pause(task_.work);
    into.work_time += stopwatch() - begun;
    scene.work_is_done.store(true, std::memory_order_release);  // pairs with compete()
    if (!asker.complete(result_of(request))) {
      ++into.not_taken;
      into.trouble = asker.trouble();
    }
    into.winner_total.record(stopwatch() - sent);
    into.winner_costs.add(asker.take_costs());
  }

  // After the end: everybody must get the first result.
  void look_again(Asker& asker, const Request& request, StormResult& into) {
    const Heard heard = asker.claim(request);
    (void)asker.take_costs();
    if (heard == Heard::won) {
      asker.walk_away();
      ++into.won_twice;
    } else if (heard == Heard::done) {
      check(asker, request, into);
    } else {
      ++(heard == Heard::failed ? into.failed : into.wrong_replays);
    }
  }

  void check(const Asker& asker, const Request& request, StormResult& into) {
    ++into.replays;
    if (asker.result() != result_of(request)) ++into.wrong_replays;
  }

  // All leave at the same storm, or some would wait for the others for ever.
  struct Decide {
    Storm* storm;
    void operator()() noexcept { storm->stops_ = storm->stop_.load(); }
  };

  static constexpr std::uint64_t kFailuresMax = 1000;
  static constexpr Nanos kPatience = 60'000'000'000;

  const StormTask& task_;
  const Contender& contender_;
  Clock& clock_;
  const std::atomic<bool>& stop_;
  bool stops_ = false;
  std::vector<Scene> scenes_;
  std::barrier<Decide> turn_;
  std::vector<StormResult> results_;
  std::vector<std::unique_ptr<Asker>> askers_;
};

double ratio(std::uint64_t a, double b) { return b <= 0 ? 0 : static_cast<double>(a) / b; }

}  // namespace

void StormResult::add(const StormResult& other) {
  storms += other.storms;
  winner_claim.merge(other.winner_claim);
  winner_total.merge(other.winner_total);
  loser.merge(other.loser);
  refusals += other.refusals;
  results += other.results;
  failed += other.failed;
  work_time += other.work_time;
  winner_costs.add(other.winner_costs);
  loser_costs.add(other.loser_costs);
  server.add(other.server);
  won_twice += other.won_twice;
  nobody_won += other.nobody_won;
  not_taken += other.not_taken;
  wrong_replays += other.wrong_replays;
  replays += other.replays;
  if (trouble.empty()) trouble = other.trouble;
}

std::uint64_t StormResult::lock_waits() const {
  return winner_costs.lock_waits + loser_costs.lock_waits + server.lock_waits;
}

std::uint64_t StormResult::ids_burnt() const {
  return server.ids - std::min<std::uint64_t>(winner_total.count(), server.ids);
}

double StormResult::refusals_per_second() const {
  return ratio(refusals, static_cast<double>(work_time) / 1e9);
}

double StormResult::trips_per_loser() const {
  return ratio(loser_costs.trips, static_cast<double>(loser.count()));
}

double StormResult::trips_per_winner() const {
  return ratio(winner_costs.trips, static_cast<double>(winner_total.count()));
}

result<StormResult> run_storm(const StormTask& task, const Contender& contender, Clock& clock,
                              const std::atomic<bool>& stop) {
  Storm storm(task, contender, clock, stop);
  if (auto entered = storm.enter(); !entered) return entered.error();
  return storm.run();
}

std::string_view to_string(Manner manner) noexcept {
  switch (manner) {
    case Manner::waits:
      return "waits for the first";
    case Manner::refused:
      return "refused at once";
    case Manner::between:
      return "in between";
    case Manner::unknown:
      break;
  }
  return "no duplicates";
}

Manner manner_of(const Histogram& loser, Micros work) {
  const auto median = loser.quantile(0.5);
  if (!median) return Manner::unknown;
  const Nanos length = work.count() * 1000;
  if (*median >= length) return Manner::waits;
  return *median < length / 10 ? Manner::refused : Manner::between;
}

}  // namespace idem::bench
