#include "choose/choose.hpp"

#include <algorithm>
#include <cmath>

#include "choose/private_store.hpp"

namespace idem::bench {
namespace {

constexpr double kCapacityShare = 0.45;  // of the budget, where a rate is measured, too
constexpr std::uint32_t kOperations = 50'000;
constexpr std::uint32_t kOperationsMax = 2'000'000;

SessionOptions base(const ChooseOptions& options) {
  SessionOptions session;
  session.workload.duplicates = options.needs.duplicates;
  session.workload.payload = options.needs.payload;
  session.workload.seed = options.seed;
  session.workload.operations = kOperations;
  session.clients = {options.needs.clients};
  session.rounds = options.rounds;
  session.round_time = std::chrono::seconds(2);
  session.limits.error_share = options.needs.max_errors;
  // Waiting long is a matter of the latency goal here, not a broken promise.
  session.limits.wait = std::chrono::seconds(10);
  return session;
}

Upkeep upkeep_of(const Subject& subject, const Row& row) {
  if (subject.name.starts_with("tiered")) return Upkeep::two_stores;
  if (!row.server) return Upkeep::embedded;
  return subject.is_private ? Upkeep::server_new : Upkeep::server_given;
}

double failed_share(const RoundResult& r) {
  return r.attempted == 0
             ? 0
             : static_cast<double>(r.attempted - r.succeeded) / static_cast<double>(r.attempted);
}

}  // namespace

Micros ChoosePlan::planned(std::size_t subjects) const {
  return planned_time(capacity, subjects) +
         (at_rate ? planned_time(*at_rate, subjects) : Micros(0));
}

ChoosePlan plan_choice(const ChooseOptions& options, std::size_t subjects) {
  ChoosePlan plan;
  const bool with_rate = options.needs.rate > 0;
  const auto share = [&](double part) {
    return Micros(static_cast<std::int64_t>(static_cast<double>(options.budget.count()) * part));
  };
  plan.capacity =
      fit_into(base(options), subjects, with_rate ? share(kCapacityShare) : options.budget);
  if (!with_rate) return plan;
  SessionOptions open = base(options);
  open.workload.rate = options.needs.rate;
  open = fit_into(open, subjects, share(1 - kCapacityShare));
  // The plan must not end before the round does.
  const double due =
      std::ceil(options.needs.rate * static_cast<double>(open.round_time.count()) / 1e6);
  open.workload.operations = static_cast<std::uint32_t>(std::clamp<double>(due, 1, kOperationsMax));
  plan.at_rate = std::move(open);
  return plan;
}

std::vector<Candidate> candidates_from(const Needs& needs, const Report& capacity,
                                       const Report* at_rate,
                                       const std::vector<Subject>& subjects) {
  std::vector<Candidate> all;
  for (std::size_t i = 0; i < subjects.size(); ++i) {
    const Row& row = capacity.rows[i];
    Candidate c;
    c.store = row.store;
    c.upkeep = upkeep_of(subjects[i], row);
    c.durability = row.durability;
    c.multi_process = row.multi_process;
    c.multi_host = row.multi_process && row.server;
    c.skipped = row.skipped;
    if (subjects[i].is_private) c.settable_to = highest_tier(subjects[i].name);
    c.capacity = row.rate().median;
    c.interval = row.rate().ci95;
    c.broken = row.total.checks.violations();
    c.error_share = failed_share(row.total);
    if (at_rate != nullptr && at_rate->rows[i].skipped.empty()) {
      const Row& paced = at_rate->rows[i];
      c.rate_reached = paced.reached;
      c.latency =
          all_claims(paced.total.corrected).quantile(needs.slo ? needs.slo->quantile : 0.99);
      for (std::string& fault : paced.total.checks.violations())
        c.broken.push_back(std::move(fault));
      c.error_share = std::max(c.error_share, failed_share(paced.total));
    }
    all.push_back(std::move(c));
  }
  return all;
}

Choice run_choice(const ChooseOptions& options, const std::vector<Subject>& subjects,
                  const Machine& machine, Clock& clock, const std::atomic<bool>& stop,
                  const OnChooseStep& on_step) {
  const ChoosePlan plan = plan_choice(options, subjects.size());
  Choice choice;
  choice.needs = options.needs;
  choice.capacity.machine = machine;
  run_session(
      plan.capacity, subjects, clock, stop, [&](const Progress& now) { on_step(now, false); },
      choice.capacity);
  if (plan.at_rate && !stop.load()) {
    choice.at_rate.emplace();
    choice.at_rate->machine = machine;
    run_session(
        *plan.at_rate, subjects, clock, stop, [&](const Progress& now) { on_step(now, true); },
        *choice.at_rate);
  }
  choice.interrupted = stop.load();
  choice.candidates = candidates_from(options.needs, choice.capacity,
                                      choice.at_rate ? &*choice.at_rate : nullptr, subjects);
  choice.decision = decide(options.needs, choice.candidates);
  if (choice.interrupted) {  // half a comparison recommends nothing
    choice.decision.chosen = choice.decision.runner_up = choice.decision.nearest = std::nullopt;
    return choice;
  }
  choice.flips = flips(options.needs, choice.candidates);
  if (choice.decision.chosen)
    choice.config = config_for(choice.candidates[*choice.decision.chosen], options.needs);
  return choice;
}

}  // namespace idem::bench
