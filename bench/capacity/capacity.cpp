#include "capacity/capacity.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <memory>

#include "load/units.hpp"

namespace idem::bench {
namespace {

constexpr double kAuditShare = 0.4;  // of a round's time, beside it
constexpr Micros kStepOverhead = std::chrono::milliseconds(20);
constexpr Micros kStepTimeMin = std::chrono::milliseconds(50);
constexpr Micros kStepTimeMax = std::chrono::seconds(3);
constexpr std::uint32_t kClosedOperations = 50'000;
// A step of a fast store ends earlier: each operation needs its request made beforehand.
constexpr std::uint32_t kStepOperationsMax = 200'000;
constexpr double kReachedShare = 0.97;

class Run {
 public:
  Run(const CapacityOptions& options, const std::vector<Subject>& subjects, Clock& clock,
      const std::atomic<bool>& stop, const std::function<void(const CapacityStep&)>& on_step)
      : subjects_(subjects),
        clock_(clock),
        stop_(stop),
        on_step_(on_step),
        payload_(options.workload.payload, options.workload.seed),
        scope_(Owner::random().hex().substr(0, 8)),
        fixtures_(subjects.size()) {
    made_.options = options;
    const auto steps = options.shares.size() + (options.slo ? options.refinements : 0U) + 1;
    step_.all = static_cast<std::uint32_t>(subjects.size() * steps) * options.rounds;
  }

  Capacity run() {
    started_ = stopwatch();
    for (std::size_t i = 0; i < subjects_.size(); ++i) begin_curve(i);
    for (std::uint32_t round = 0; round < made_.options.rounds; ++round) {
      for (std::size_t i = 0; i < subjects_.size(); ++i) closed_loop(i);
    }
    for (const double share : made_.options.shares) {
      for (std::size_t i = 0; i < subjects_.size(); ++i) step(i, share * closed_rate(i));
    }
    for (std::uint32_t n = 0; made_.options.slo && n < made_.options.refinements; ++n) {
      for (std::size_t i = 0; i < subjects_.size(); ++i) {
        if (const auto rate = next_to_try(made_.curves[i].points)) step(i, *rate);
      }
    }
    made_.interrupted = stop_.load();
    for (Curve& curve : made_.curves) {
      if (curve.skipped.empty() && curve.closed.empty())
        curve.skipped = "interrupted before its first round";
      curve.faults = curve.checks.violations();
    }
    return std::move(made_);
  }

 private:
  void begin_curve(std::size_t i) {
    Curve curve;
    curve.store = subjects_[i].name;
    auto opened = subjects_[i].open();
    if (opened) {
      curve.durability = opened->store->capabilities().durability;
      fixtures_[i] = std::move(*opened);
    } else {
      curve.skipped = std::string(to_string(opened.error().code)) + ": " + opened.error().message;
    }
    made_.curves.push_back(std::move(curve));
  }

  [[nodiscard]] bool goes_on(std::size_t i) const {
    return made_.curves[i].skipped.empty() && !stop_.load();
  }

  [[nodiscard]] double closed_rate(std::size_t i) const {
    return summarize(made_.curves[i].closed).median;
  }

  void say(const std::string& what) {
    step_.what = what;
    step_.left = step_.done == 0 ? planned_time(made_.options, subjects_.size())
                                 : Micros((stopwatch() - started_) / step_.done *
                                          (step_.all - std::min(step_.all, step_.done)) / 1000);
    if (on_step_) on_step_(step_);
    ++step_.done;
  }

  RoundResult one_round(std::size_t i, const Workload& workload, const Plan& plan) {
    if (!requests_ || requests_->size() < plan.keys)
      requests_ = std::make_unique<Requests>(plan.keys, workload.seed);
    requests_->set_scope(fmt::format("{}-{}", scope_, step_.done));
    RoundTask task{&workload,
                   &plan,
                   requests_.get(),
                   &payload_,
                   made_.options.clients,
                   made_.options.step_time};
    task.remove_after = !subjects_[i].is_private;
    RoundResult result = run_round(task, fixtures_[i].store, clock_, stop_);
    made_.curves[i].checks.add(result.checks);
    return result;
  }

  void closed_loop(std::size_t i) {
    if (!goes_on(i)) return;
    say(subjects_[i].name + ", closed loop");
    Workload workload = made_.options.workload;
    workload.rate = 0;
    workload.operations = kClosedOperations;
    const RoundResult result = one_round(i, workload, make_plan(workload));
    if (!stop_.load()) made_.curves[i].closed.push_back(result.rate());
  }

  void step(std::size_t i, double rate) {
    if (!goes_on(i) || rate < 1) return;
    Workload workload = made_.options.workload;
    workload.rate = rate;
    const double due = std::ceil(rate * static_cast<double>(made_.options.step_time.count()) / 1e6);
    workload.operations =
        static_cast<std::uint32_t>(std::clamp<double>(due, 1, kStepOperationsMax));
    const Plan plan = make_plan(workload);
    CurvePoint point;
    point.offered = rate;
    std::vector<double> achieved;
    std::uint32_t good = 0;  // rounds within the goal: one disturbed round must not decide
    for (std::uint32_t round = 0; round < made_.options.rounds; ++round) {
      if (stop_.load()) return;  // a point needs all of its rounds
      say(fmt::format("{} at {}/s", subjects_[i].name, si(rate)));
      const RoundResult result = one_round(i, workload, plan);
      achieved.push_back(result.rate());
      const Histogram claims = all_claims(result.corrected);
      if (!made_.options.slo || holds(*made_.options.slo, claims)) ++good;
      point.claims.merge(claims);
    }
    if (stop_.load()) return;
    point.within = good * 2 > made_.options.rounds;
    add(made_.curves[i], std::move(point), summarize(achieved).median);
  }

  void add(Curve& curve, CurvePoint point, double achieved) {
    point.achieved = achieved;
    point.reached = achieved >= kReachedShare * point.offered;
    point.within = point.within && point.reached;
    const auto after =
        std::find_if(curve.points.begin(), curve.points.end(),
                     [&](const CurvePoint& other) { return other.offered > point.offered; });
    curve.points.insert(after, std::move(point));
  }

  const std::vector<Subject>& subjects_;
  Clock& clock_;
  const std::atomic<bool>& stop_;
  const std::function<void(const CapacityStep&)>& on_step_;
  const Payload payload_;
  const std::string scope_;  // so that two measurements of one store do not meet
  std::unique_ptr<Requests> requests_;
  std::vector<Fixture> fixtures_;
  Capacity made_;
  CapacityStep step_;
  Nanos started_ = 0;
};

std::int64_t rounds_in_all(const CapacityOptions& o, std::size_t subjects) {
  const std::size_t steps = o.shares.size() + (o.slo ? o.refinements : 0U) + 1;
  return static_cast<std::int64_t>(subjects * steps * o.rounds);
}

Json point_json(const CurvePoint& point, bool with_goal) {
  return Json{{"offered", number(point.offered)},
              {"achieved", number(point.achieved)},
              {"reached", point.reached},
              {"corrected_claim_ns", to_json(point.claims)},
              {"within", with_goal ? Json(point.within) : Json(nullptr)}};
}

Json curve_json(const Curve& curve, const CapacityOptions& options) {
  Json out{{"store", curve.store},
           {"clients", options.clients},
           {"skipped", curve.skipped.empty() ? Json(nullptr) : Json(curve.skipped)}};
  if (!curve.skipped.empty()) return out;
  out["durability"] = to_string(curve.durability);
  out["void"] = !curve.faults.empty();
  out["faults"] = curve.faults;
  out["closed_rate"] = to_json(summarize(curve.closed), curve.closed);
  const auto bent = knee(curve.points);
  out["knee"] = bent ? number(*bent) : Json(nullptr);
  const auto highest = options.slo ? highest_within(curve.points) : std::nullopt;
  out["highest_within"] = highest ? number(*highest) : Json(nullptr);
  out["points"] = Json::array();
  for (const CurvePoint& point : curve.points)
    out["points"].push_back(point_json(point, options.slo.has_value()));
  return out;
}

}  // namespace

Micros planned_time(const CapacityOptions& options, std::size_t subjects) {
  const auto a_round = Micros(static_cast<std::int64_t>(
                           static_cast<double>(options.step_time.count()) * (1 + kAuditShare))) +
                       kStepOverhead;
  return a_round * rounds_in_all(options, subjects);
}

CapacityOptions fit_into(CapacityOptions options, std::size_t subjects, Micros budget) {
  const std::int64_t rounds = std::max<std::int64_t>(1, rounds_in_all(options, subjects));
  const Micros room = budget / rounds - kStepOverhead;
  const auto timed =
      Micros(static_cast<std::int64_t>(static_cast<double>(room.count()) / (1 + kAuditShare)));
  options.step_time = std::clamp(timed, kStepTimeMin, kStepTimeMax);
  return options;
}

Capacity run_capacity(const CapacityOptions& options, const std::vector<Subject>& subjects,
                      Clock& clock, const std::atomic<bool>& stop,
                      const std::function<void(const CapacityStep&)>& on_step) {
  return Run(options, subjects, clock, stop, on_step).run();
}

Json to_json(const Capacity& capacity) {
  const CapacityOptions& o = capacity.options;
  Json out;
  out["interrupted"] = capacity.interrupted;
  out["workload"] = Json{{"keys", to_string(o.workload.keys)},
                         {"duplicates", o.workload.duplicates},
                         {"payload_bytes", o.workload.payload},
                         {"clients", o.clients},
                         {"seed", o.workload.seed}};
  out["plan"] = Json{{"rounds", o.rounds},
                     {"step_time_us", o.step_time.count()},
                     {"slo", o.slo ? Json(o.slo->text) : Json(nullptr)},
                     {"slo_limit_ns", o.slo ? Json(o.slo->limit) : Json(nullptr)},
                     {"knee_factor", kKneeFactor}};
  out["curves"] = Json::array();
  for (const Curve& curve : capacity.curves) out["curves"].push_back(curve_json(curve, o));
  return out;
}

}  // namespace idem::bench
