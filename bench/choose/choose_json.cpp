#include "choose/choose.hpp"

namespace idem::bench {
namespace {

Json to_json(const Needs& needs) {
  return Json{{"rate", needs.rate > 0 ? Json(needs.rate) : Json(nullptr)},
              {"clients", needs.clients},
              {"processes", needs.processes},
              {"hosts", needs.hosts},
              {"duplicates", needs.duplicates},
              {"payload_bytes", needs.payload},
              {"durability", to_string(needs.durability)},
              {"slo", needs.slo ? Json(needs.slo->text) : Json(nullptr)},
              {"slo_limit_ns", needs.slo ? Json(needs.slo->limit) : Json(nullptr)},
              {"max_errors", needs.max_errors},
              {"headroom", kHeadroom}};
}

Json store_at(const Choice& choice, std::optional<std::size_t> index) {
  return index ? Json(choice.candidates[*index].store) : Json(nullptr);
}

Json to_json(const Candidate& c, const std::vector<std::string>& against, const Needs& needs) {
  return Json{{"store", c.store},
              {"upkeep", to_string(c.upkeep)},
              {"durability", to_string(c.durability)},
              {"multi_process", c.multi_process},
              {"multi_host", c.multi_host},
              {"capacity_floor", c.skipped.empty() ? number(c.floor()) : Json(nullptr)},
              {"headroom", c.skipped.empty() && needs.rate > 0 ? number(c.floor() / needs.rate)
                                                               : Json(nullptr)},
              {"latency_ns", optional_number(c.latency)},
              {"fits", against.empty()},
              {"against", against}};
}

}  // namespace

Json to_json(const Choice& choice) {
  Json out;
  out["interrupted"] = choice.interrupted;
  out["needs"] = to_json(choice.needs);
  Json recommendation{{"store", store_at(choice, choice.decision.chosen)},
                      {"runner_up", store_at(choice, choice.decision.runner_up)},
                      {"nearest", store_at(choice, choice.decision.nearest)},
                      {"capacity_needed", number(choice.decision.needed)},
                      {"flips", Json::array()}};
  for (const Flip& flip : choice.flips)
    recommendation["flips"].push_back(
        Json{{"if", flip.change},
             {"store", flip.store.empty() ? Json(nullptr) : Json(flip.store)},
             {"measured", flip.measured}});
  out["recommendation"] = std::move(recommendation);
  out["candidates"] = Json::array();
  for (std::size_t i = 0; i < choice.candidates.size(); ++i)
    out["candidates"].push_back(
        to_json(choice.candidates[i], choice.decision.against[i], choice.needs));
  out["config"] = choice.config.empty() ? Json(nullptr) : Json(choice.config);
  const Json capacity = bench::to_json(choice.capacity);
  for (const char* part : {"workload", "plan", "limits", "free_store_rates"})
    out[part] = capacity.at(part);
  out["rows"] = capacity.at("rows");
  if (choice.at_rate) {
    const Json paced = bench::to_json(*choice.at_rate);
    out["at_rate_plan"] = paced.at("plan");
    out["at_rate"] = paced.at("rows");
  } else {
    out["at_rate"] = Json::array();
  }
  return out;
}

}  // namespace idem::bench
