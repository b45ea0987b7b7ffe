#include "load/session.hpp"

#include <algorithm>
#include <memory>

#include "load/free_store.hpp"
#include "load/payload.hpp"
#include "load/plan.hpp"
#include "load/requests.hpp"

namespace idem::bench {
namespace {

// A round takes longer than its timed part: opening, and the audit of every key.
constexpr double kAuditShare = 0.4;
constexpr Micros kRoundOverhead = std::chrono::milliseconds(30);
constexpr Micros kRoundTimeMin = std::chrono::milliseconds(20);
constexpr Micros kFreeRoundTime = std::chrono::milliseconds(100);

std::int64_t rounds_in_all(const SessionOptions& options, std::size_t subjects) {
  return static_cast<std::int64_t>(subjects * options.clients.size()) * (options.rounds + 1);
}

class Session {
 public:
  Session(const SessionOptions& options, const std::vector<Subject>& subjects, Clock& clock,
          const std::atomic<bool>& stop, const OnProgress& progress, Report& report)
      : options_(options),
        subjects_(subjects),
        clock_(clock),
        stop_(stop),
        on_progress_(progress),
        report_(report),
        plan_(make_plan(options.workload)),
        requests_(plan_.keys, options.workload.seed),
        payload_(options.workload.payload, options.workload.seed),
        scope_(Owner::random().hex().substr(0, 8)),
        kept_(subjects.size()) {}

  void run() {
    report_.plan_hash = plan_hash(plan_);
    report_.workload = options_.workload;
    report_.rounds = options_.rounds;
    report_.round_time = options_.round_time;
    report_.limits = options_.limits;
    make_rows();
    for (const std::uint32_t clients : options_.clients) measure_free_store(clients);
    progress_.all = static_cast<std::uint32_t>(rounds_in_all(options_, subjects_.size()));
    started_ = stopwatch();
    for (std::uint32_t round = 0; round <= options_.rounds; ++round) {
      for (std::size_t i = 0; i < report_.rows.size(); ++i) {
        if (stop_.load()) break;
        run_row(report_.rows[i], i % subjects_.size(), round > 0);
      }
    }
    report_.interrupted = stop_.load();
    for (Row& row : report_.rows) {
      if (row.skipped.empty() && row.rates.empty())
        row.skipped = "interrupted before its first round";
      if (row.skipped.empty())
        judge(row, options_.workload, options_.limits, report_.free_rates[row.clients],
              report_.machine.cores);
    }
  }

 private:
  // Stores next to each other for the same number of clients: those are what is compared.
  void make_rows() {
    for (const std::uint32_t clients : options_.clients) {
      for (const Subject& subject : subjects_) {
        Row row;
        row.store = subject.name;
        row.clients = clients;
        report_.rows.push_back(std::move(row));
      }
    }
  }

  RoundTask task(std::uint32_t clients) {
    requests_.set_scope(scope_ + "-" + std::to_string(++rounds_run_));
    return {&options_.workload, &plan_, &requests_, &payload_, clients, options_.round_time};
  }

  void measure_free_store(std::uint32_t clients) {
    Workload closed = options_.workload;
    closed.rate = 0;
    closed.crashes = 0;
    closed.work = Micros(0);
    RoundTask free = task(clients);
    free.workload = &closed;
    free.time = kFreeRoundTime;
    free.audit = false;
    report_.free_rates[clients] =
        run_round(free, std::make_shared<FreeStore>(), clock_, stop_).rate();
  }

  result<Fixture> open(std::size_t subject) {
    if (subjects_[subject].is_private) return subjects_[subject].open();
    if (!kept_[subject].store) {
      auto opened = subjects_[subject].open();
      if (!opened) return opened;
      kept_[subject] = std::move(*opened);
    }
    return kept_[subject];
  }

  void run_row(Row& row, std::size_t subject, bool counts) {
    if (!row.skipped.empty()) return;
    say(row);
    auto fixture = open(subject);
    if (!fixture) {
      row.skipped = std::string(to_string(fixture.error().code)) + ": " + fixture.error().message;
      return;
    }
    const Capabilities& can = fixture->store->capabilities();
    row.durability = can.durability;
    row.server = can.server_clock;
    row.multi_process = can.multi_process;
    RoundTask now = task(row.clients);
    now.remove_after = !subjects_[subject].is_private;
    const RoundResult result = run_round(now, fixture->store, clock_, stop_);
    ++progress_.done;
    // A violation counts whenever it shows, the figures of a warm-up or of a broken round do not.
    if (!counts || stop_.load()) {
      row.total.checks.add(result.checks);
      return;
    }
    row.rates.push_back(result.rate());
    row.attempts.push_back(result.elapsed == 0 ? 0
                                               : static_cast<double>(result.attempted) * 1e9 /
                                                     static_cast<double>(result.elapsed));
    row.total.add(result);
  }

  void say(const Row& row) {
    progress_.subject = row.store;
    progress_.clients = row.clients;
    if (progress_.done > 0) {
      const Nanos a_round = (stopwatch() - started_) / progress_.done;
      progress_.left = Micros(a_round * (progress_.all - progress_.done) / 1000);
    } else {
      progress_.left = planned_time(options_, subjects_.size());
    }
    if (on_progress_) on_progress_(progress_);
  }

  const SessionOptions& options_;
  const std::vector<Subject>& subjects_;
  Clock& clock_;
  const std::atomic<bool>& stop_;
  const OnProgress& on_progress_;
  Report& report_;
  const Plan plan_;
  Requests requests_;
  const Payload payload_;
  const std::string scope_;  // so that two sessions on one store do not meet
  std::vector<Fixture> kept_;
  std::uint32_t rounds_run_ = 0;
  Progress progress_;
  Nanos started_ = 0;
};

}  // namespace

Micros planned_time(const SessionOptions& options, std::size_t subjects) {
  const auto a_round = Micros(static_cast<std::int64_t>(
                           static_cast<double>(options.round_time.count()) * (1 + kAuditShare))) +
                       kRoundOverhead;
  return a_round * rounds_in_all(options, subjects) +
         kFreeRoundTime * static_cast<std::int64_t>(options.clients.size());
}

SessionOptions fit_into(SessionOptions options, std::size_t subjects, Micros budget) {
  const std::int64_t rounds = std::max<std::int64_t>(1, rounds_in_all(options, subjects));
  const Micros a_round = budget / rounds - kRoundOverhead;
  const auto timed =
      Micros(static_cast<std::int64_t>(static_cast<double>(a_round.count()) / (1 + kAuditShare)));
  options.round_time = std::clamp(timed, kRoundTimeMin, options.round_time);
  return options;
}

void run_session(const SessionOptions& options, const std::vector<Subject>& subjects, Clock& clock,
                 const std::atomic<bool>& stop, const OnProgress& progress, Report& report) {
  if (subjects.empty()) return;
  Session(options, subjects, clock, stop, progress, report).run();
}

}  // namespace idem::bench
