#include "choose/rule.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <numeric>

#include "load/json.hpp"
#include "load/units.hpp"

namespace idem::bench {
namespace {

std::string_view goal_name(const Needs& needs) {
  return needs.slo ? std::string_view(needs.slo->text).substr(0, needs.slo->text.find('<')) : "p99";
}

// All but capacity.
std::vector<std::string> unmet(const Needs& needs, const Candidate& c) {
  if (!c.skipped.empty()) return {"not measured: " + c.skipped};
  std::vector<std::string> why = c.broken;
  if (c.error_share > needs.max_errors)
    why.push_back(fmt::format("{} of its calls failed, {} are allowed", percent(c.error_share),
                              percent(needs.max_errors)));
  if (c.durability < needs.durability)
    why.push_back(fmt::format("its tier is '{}', '{}' is needed", to_string(c.durability),
                              to_string(needs.durability)));
  if (needs.processes > 1 && !c.multi_process)
    why.push_back(fmt::format("not shared by {} processes", needs.processes));
  if (needs.hosts > 1 && !c.multi_host)
    why.push_back(fmt::format("not shared by {} hosts", needs.hosts));
  if (needs.rate > 0 && c.rate_reached == false)
    why.push_back(fmt::format("did not keep up with {}/s", si(needs.rate)));
  if (needs.slo && c.latency && *c.latency >= needs.slo->limit)
    why.push_back(fmt::format("{} is {} at {}/s, {} is the goal", goal_name(needs),
                              duration_text(c.latency), si(needs.rate), needs.slo->text));
  return why;
}

double capacity_needed(const Needs& needs, const std::vector<Candidate>& candidates,
                       const Decision& so_far) {
  if (needs.rate > 0) return kHeadroom * needs.rate;
  double best = 0;
  for (std::size_t i = 0; i < candidates.size(); ++i) {
    if (so_far.against[i].empty()) best = std::max(best, candidates[i].floor());
  }
  return best / 2;
}

std::string name_of(const Decision& decision, const std::vector<Candidate>& candidates) {
  return decision.chosen ? candidates[*decision.chosen].store : "";
}

}  // namespace

std::string_view to_string(Upkeep upkeep) noexcept {
  switch (upkeep) {
    case Upkeep::embedded:
      return "no server to run";
    case Upkeep::server_given:
      return "a server that is there already";
    case Upkeep::server_new:
      return "a server to run";
    case Upkeep::two_stores:
      break;
  }
  return "two stores to run";
}

Decision decide(const Needs& needs, const std::vector<Candidate>& candidates) {
  Decision decision;
  for (const Candidate& candidate : candidates) decision.against.push_back(unmet(needs, candidate));
  decision.needed = capacity_needed(needs, candidates, decision);

  std::vector<std::size_t> order(candidates.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
    return candidates[a].upkeep < candidates[b].upkeep;
  });
  for (const std::size_t i : order) {
    const Candidate& candidate = candidates[i];
    if (!decision.against[i].empty()) continue;
    if (candidate.floor() < decision.needed) {
      decision.against[i].push_back(fmt::format(
          "capacity {}/s is less than {}/s{}", si(candidate.floor()), si(decision.needed),
          needs.rate > 0 ? ", twice the rate" : ", half of the most able one's"));
      if (!decision.nearest || candidates[*decision.nearest].floor() < candidate.floor())
        decision.nearest = i;
    } else if (!decision.chosen) {
      decision.chosen = i;
    } else if (!decision.runner_up) {
      decision.runner_up = i;
    }
  }
  if (decision.chosen) decision.nearest.reset();
  return decision;
}

std::vector<Flip> flips(const Needs& needs, const std::vector<Candidate>& candidates) {
  const Decision now = decide(needs, candidates);
  std::vector<Flip> found;
  const auto consider = [&](std::string change, const Needs& changed) {
    const Decision then = decide(changed, candidates);
    if (then.chosen != now.chosen)
      found.push_back({std::move(change), name_of(then, candidates), true});
  };
  if (now.chosen && needs.rate > 0) {
    const Candidate& chosen = candidates[*now.chosen];
    Needs more = needs;
    more.rate = chosen.floor() / kHeadroom * 1.001;
    more.slo.reset();  // measured at the rate as it is
    consider(fmt::format("rate above {}/s", si(chosen.floor() / kHeadroom)), more);
    if (chosen.latency) {
      Needs stricter = needs;
      stricter.slo = Slo{needs.slo ? needs.slo->quantile : 0.99, *chosen.latency,
                         fmt::format("{}<{}", goal_name(needs), duration_text(chosen.latency))};
      consider(fmt::format("{} below {} needed", goal_name(needs), duration_text(chosen.latency)),
               stricter);
    }
  }
  if (needs.processes == 1) {
    Needs more = needs;
    more.processes = 2;
    consider("more than one process", more);
  }
  if (needs.hosts == 1) {
    Needs more = needs;
    more.hosts = more.processes = 2;
    consider("more than one host", more);
  }
  for (const Durability tier : {Durability::none, Durability::process, Durability::power}) {
    if (tier == needs.durability) continue;
    const std::string change = fmt::format("tier '{}' {}", to_string(tier),
                                           tier < needs.durability ? "is enough" : "needed");
    if (std::any_of(candidates.begin(), candidates.end(), [&](const Candidate& c) {
          return c.skipped.empty() && c.durability < tier && c.settable_to >= tier;
        })) {
      found.push_back({change, "", false});
      continue;
    }
    Needs other = needs;
    other.durability = tier;
    consider(change, other);
  }
  return found;
}

}  // namespace idem::bench
