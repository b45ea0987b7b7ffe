#include "contention/contention.hpp"

#include <fmt/core.h>

#include <algorithm>

#include "load/units.hpp"

namespace idem::bench {
namespace {

constexpr Micros kRoundOverhead = std::chrono::milliseconds(15);
constexpr Micros kRoundTimeMin = std::chrono::milliseconds(20);
constexpr Micros kRoundTimeMax = std::chrono::seconds(2);
// A storm beside its work: the claim, those who waited coming through, and the second look.
constexpr Micros kStormOverhead = std::chrono::milliseconds(25);
constexpr double kErrorShareMax = 0.01;

std::string clients_text(std::uint32_t clients) {
  return fmt::format("{} client{}", clients, clients == 1 ? "" : "s");
}

void judge(GridRow& row) {
  const GridResult& r = row.total;
  if (r.won_twice > 0) row.faults.push_back(fmt::format("{} keys were won twice", r.won_twice));
  if (r.nobody_won > 0)
    row.faults.push_back(fmt::format("{} keys were refused to everybody", r.nobody_won));
  const std::uint64_t asked = r.answered() + r.failed;
  if (asked > 0 && static_cast<double>(r.failed) > kErrorShareMax * static_cast<double>(asked))
    row.faults.push_back(fmt::format("{} of {} claims failed: {}", r.failed, asked, r.trouble));
}

void judge(StormRow& row) {
  const StormResult& r = row.total;
  const auto fault = [&](std::uint64_t count, const char* what) {
    if (count > 0) row.faults.push_back(fmt::format("{} {}", count, what));
  };
  fault(r.won_twice, "storms had two winners");
  fault(r.nobody_won, "storms had no winner");
  fault(r.not_taken, "completes of a winner were not taken");
  fault(r.wrong_replays, "answers were not the first result");
  if (r.failed > 0) row.faults.push_back(fmt::format("{} claims failed: {}", r.failed, r.trouble));
}

std::int64_t cells_of(const ContentionOptions& o, std::size_t contenders) {
  return static_cast<std::int64_t>(contenders * o.clients.size() * o.keys.size());
}

class Run {
 public:
  Run(const ContentionOptions& options, std::vector<Contender> contenders, Clock& clock,
      const std::atomic<bool>& stop, const std::function<void(const ContentionStep&)>& on_step)
      : clock_(clock),
        stop_(stop),
        on_step_(on_step),
        requests_(std::max(options.claims, options.storms), options.seed),
        scope_(Owner::random().hex().substr(0, 8)) {
    made_.options = options;
    made_.contenders = std::move(contenders);
    const std::size_t count = made_.contenders.size();
    // Beside each other stands what is compared: the contenders of one cell.
    for (const KeyChoice& keys : options.keys) {
      for (const std::uint32_t clients : options.clients) {
        for (std::size_t i = 0; i < count; ++i)
          made_.grid.push_back({i, keys, clients, {}, {}, {}});
      }
    }
    for (std::size_t i = 0; i < count; ++i) made_.storm.push_back({i, {}, {}});
  }

  Contention run() {
    const ContentionOptions& o = made_.options;
    const auto cells = static_cast<std::uint32_t>(made_.grid.size() + made_.storm.size());
    step_.all = cells * (o.rounds + 1);
    started_ = stopwatch();
    for (std::uint32_t round = 0; round <= o.rounds && !stop_.load(); ++round) {
      for (GridRow& row : made_.grid) measure(row, round > 0);
      for (StormRow& row : made_.storm) measure(row, round > 0);
    }
    made_.interrupted = stop_.load();
    for (GridRow& row : made_.grid) judge(row);
    for (StormRow& row : made_.storm) judge(row);
    return std::move(made_);
  }

 private:
  bool takes_part(std::size_t contender) const {
    return made_.contenders[contender].skipped.empty() && !stop_.load();
  }

  void begin(std::string what) {
    step_.what = std::move(what);
    const Nanos spent = stopwatch() - started_;
    step_.left = step_.done == 0 ? planned_time(made_.options, made_.contenders.size())
                                 : Micros(spent / step_.done * (step_.all - step_.done) / 1000);
    if (on_step_) on_step_(step_);
    ++step_.done;
    tenant_ = fmt::format("{}-{}", scope_, step_.done);
    requests_.set_scope(tenant_);
  }

  // The contender's round, and what its server counted meanwhile; nobody else uses that server.
  template <class Round>
  auto counted(const Contender& contender, Round round) -> decltype(round()) {
    if (!contender.count) return round();
    const auto before = contender.count();
    if (!before) return before.error();
    auto found = round();
    if (!found) return found;
    const auto after = contender.count();
    if (!after) return after.error();
    found->server = after->since(*before);
    return found;
  }

  void measure(GridRow& row, bool counts) {
    if (!takes_part(row.contender)) return;
    Contender& contender = made_.contenders[row.contender];
    begin(
        fmt::format("{}, {}, {}", contender.name, to_string(row.keys), clients_text(row.clients)));
    const GridTask task{row.keys, row.clients, made_.options.round_time, &requests_};
    auto found = counted(contender, [&] { return run_grid(task, contender, stop_); });
    if (contender.tidy) contender.tidy(tenant_);
    if (!found) {
      contender.skipped = found.error().message;
    } else if (counts && !stop_.load()) {
      row.rates.push_back(found->rate());
      row.total.add(*found);
    } else {  // a violation counts whenever it shows
      row.total.won_twice += found->won_twice;
      row.total.nobody_won += found->nobody_won;
    }
  }

  void measure(StormRow& row, bool counts) {
    if (!takes_part(row.contender)) return;
    Contender& contender = made_.contenders[row.contender];
    begin(contender.name + ", duplicate storm");
    const ContentionOptions& o = made_.options;
    const StormTask task{o.storm_clients, o.storms, o.work, &requests_};
    auto found = counted(contender, [&] { return run_storm(task, contender, clock_, stop_); });
    if (contender.tidy) contender.tidy(tenant_);
    if (!found) {
      contender.skipped = found.error().message;
    } else if (counts && !stop_.load()) {
      row.total.add(*found);
    }
  }

  Clock& clock_;
  const std::atomic<bool>& stop_;
  const std::function<void(const ContentionStep&)>& on_step_;
  Requests requests_;
  const std::string scope_;  // so that two contentions on one store do not meet
  std::string tenant_;       // of this round's requests
  Contention made_;
  ContentionStep step_;
  Nanos started_ = 0;
};

}  // namespace

bool Contention::any_void() const {
  const auto is_void = [](const auto& row) { return !row.faults.empty(); };
  return std::any_of(grid.begin(), grid.end(), is_void) ||
         std::any_of(storm.begin(), storm.end(), is_void);
}

bool Contention::any_measured() const {
  return std::any_of(grid.begin(), grid.end(), [](const auto& row) { return !row.rates.empty(); });
}

Micros planned_time(const ContentionOptions& o, std::size_t contenders) {
  const Micros storms =
      (o.work + kStormOverhead) * o.storms * static_cast<std::int64_t>(contenders);
  const Micros grid = (o.round_time + kRoundOverhead) * cells_of(o, contenders);
  return (storms + grid) * (o.rounds + 1);
}

ContentionOptions fit_into(ContentionOptions options, std::size_t contenders, Micros budget) {
  const auto left_for_cells = [&] {
    ContentionOptions none = options;
    none.round_time = -kRoundOverhead;  // storms alone
    return budget - planned_time(none, contenders);
  };
  const std::int64_t cells = std::max<std::int64_t>(1, cells_of(options, contenders));
  const auto room = [&] {
    return left_for_cells() / (cells * (options.rounds + 1)) - kRoundOverhead;
  };
  while (options.storms > 1 && room() < kRoundTimeMin) --options.storms;
  while (options.rounds > 1 && room() < kRoundTimeMin) --options.rounds;
  options.round_time = std::clamp(room(), kRoundTimeMin, kRoundTimeMax);
  return options;
}

Contention run_contention(const ContentionOptions& options, std::vector<Contender> contenders,
                          Clock& clock, const std::atomic<bool>& stop,
                          const std::function<void(const ContentionStep&)>& on_step) {
  return Run(options, std::move(contenders), clock, stop, on_step).run();
}

}  // namespace idem::bench
