// Choosing a store: every candidate is measured under the stated needs, then the rule speaks.
#pragma once

#include "choose/rule.hpp"
#include "load/session.hpp"

namespace idem::bench {

struct ChooseOptions {
  Needs needs;
  std::uint32_t rounds = 6;  // of each measurement that count; one more warms up
  Micros budget = std::chrono::seconds(120);
  std::uint64_t seed = 1;
};

struct Choice {
  Needs needs;
  Report capacity;                // closed loop
  std::optional<Report> at_rate;  // open loop at needs.rate
  std::vector<Candidate> candidates;
  Decision decision;
  std::vector<Flip> flips;
  std::string config;  // YAML; "" if nothing is recommended
  bool interrupted = false;
};

// The two sessions as they will be run, fitted into the budget; the second only with a rate.
struct ChoosePlan {
  SessionOptions capacity;
  std::optional<SessionOptions> at_rate;
  [[nodiscard]] Micros planned(std::size_t subjects) const;
};
[[nodiscard]] ChoosePlan plan_choice(const ChooseOptions& options, std::size_t subjects);

using OnChooseStep = std::function<void(const Progress&, bool at_rate)>;

// `report` of the machine: cores are needed to judge rows.
[[nodiscard]] Choice run_choice(const ChooseOptions& options, const std::vector<Subject>& subjects,
                                const Machine& machine, Clock& clock, const std::atomic<bool>& stop,
                                const OnChooseStep& on_step);

// Candidate i from row i of each report. Pure.
[[nodiscard]] std::vector<Candidate> candidates_from(const Needs& needs, const Report& capacity,
                                                     const Report* at_rate,
                                                     const std::vector<Subject>& subjects);

// A configuration that `idem config check` takes: the store that was chosen, and the durations.
[[nodiscard]] std::string config_for(const Candidate& chosen, const Needs& needs);

// needs, rows, at_rate, candidates, recommendation and config; the header is the caller's.
[[nodiscard]] Json to_json(const Choice& choice);

}  // namespace idem::bench
