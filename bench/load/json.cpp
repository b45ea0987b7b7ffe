#include "load/json.hpp"

#include <cmath>

namespace idem::bench {

Json number(double value) { return std::isfinite(value) ? Json(value) : Json(nullptr); }

Json optional_number(std::optional<Nanos> value) { return value ? Json(*value) : Json(nullptr); }

Json to_json(const Summary& summary, const std::vector<double>& rounds) {
  if (rounds.empty()) return nullptr;
  Json out;
  out["median"] = number(summary.median);
  out["ci95"] = summary.ci95 ? Json::array({summary.ci95->low, summary.ci95->high}) : Json(nullptr);
  out["min"] = number(summary.min);
  out["max"] = number(summary.max);
  out["rounds"] = rounds;
  return out;
}

Json to_json(const Histogram& histogram) {
  if (histogram.count() == 0) return nullptr;
  return Json{{"count", histogram.count()},
              {"mean", number(histogram.mean())},
              {"min", histogram.min()},
              {"p50", *histogram.quantile(0.5)},
              {"p90", *histogram.quantile(0.9)},
              {"p99", *histogram.quantile(0.99)},
              {"p999", *histogram.quantile(0.999)},
              {"max", histogram.max()}};
}

Json to_json(const Machine& machine) {
  return Json{{"cpu", machine.cpu},
              {"cores", machine.cores},
              {"virtual", machine.is_virtual},
              {"kernel", machine.kernel},
              {"governor", machine.governor.empty() ? Json(nullptr) : Json(machine.governor)},
              {"load_average", number(machine.load_average)},
              {"compiler", machine.compiler},
              {"build", machine.build},
              {"data_dir", machine.data_dir},
              {"filesystem", machine.filesystem},
              {"fdatasync_p50_ns", optional_number(machine.fdatasync_p50)},
              {"fdatasync_p99_ns", optional_number(machine.fdatasync_p99)}};
}

std::string_view words_of(const Json::exception& problem) noexcept {
  const std::string_view text = problem.what();
  const std::size_t end = text.find("] ");
  return end == std::string_view::npos ? text : text.substr(end + 2);
}

std::string_view to_string(Durability tier) noexcept {
  switch (tier) {
    case Durability::none:
      return "none";
    case Durability::process:
      return "process";
    case Durability::power:
      return "power";
  }
  return "";
}

}  // namespace idem::bench
