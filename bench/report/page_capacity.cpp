#include <fmt/core.h>

#include "report/charts.hpp"
#include "report/figures.hpp"
#include "report/page.hpp"

namespace idem::bench {
namespace {

void add_verdict(Page& page, const Json& curve, const Json& plan) {
  const std::string store = text_figure(curve, "store");
  if (curve.at("skipped").is_string()) {
    page.notes.push_back(
        {PageNote::Kind::note, store + " skipped: " + text_figure(curve, "skipped")});
    return;
  }
  for (const Json& fault : curve.at("faults"))
    page.notes.push_back({PageNote::Kind::fault, store + ": " + fault.get<std::string>()});
  std::string text = store + ": ";
  if (plan.at("slo").is_string()) {
    text += curve.at("highest_within").is_number()
                ? fmt::format("highest rate within {}: {}/s; ", text_figure(plan, "slo"),
                              rate_figure(curve, "highest_within"))
                : fmt::format("no rate that was tried is within {}; ", text_figure(plan, "slo"));
  }
  text += curve.at("knee").is_number() ? fmt::format("knee at {}/s", rate_figure(curve, "knee"))
                                       : "no knee: not even the lightest load was kept up with";
  text += fmt::format("; closed loop {}/s", rate_figure(curve, "closed_rate.median"));
  page.notes.push_back({PageNote::Kind::verdict, text});
}

PageSection curve_section(const Json& curve, const Json& plan, std::size_t index) {
  PageSection section;
  section.title = text_figure(curve, "store") + " (tier " + text_figure(curve, "durability") + ")";
  PageTable table;
  table.title = section.title;
  table.columns = {{"OFFERED/S", true, 0}, {"ACHIEVED/S", true, 0}, {"P50", true, 2},
                   {"P90", true, 3},       {"P99", true, 0},        {"P99.9", true, 1},
                   {"LONGEST", true, 4},   {"", false, 0}};
  std::vector<ChartLine> lines{{"p50", {}}, {"p99", {}}, {"p99.9", {}}};
  static constexpr const char* kMembers[] = {"p50", "p99", "p999"};
  for (const Json& point : curve.at("points")) {
    const auto time = [&](const char* q) {
      return time_figure(point, std::string("corrected_claim_ns.") + q);
    };
    std::string mark = point.at("reached").get<bool>() ? "" : "rate not reached";
    if (mark.empty() && point.at("within").is_boolean())
      mark = point.at("within").get<bool>() ? "within" : "beyond the goal";
    table.rows.push_back({rate_figure(point, "offered"), rate_figure(point, "achieved"),
                          time("p50"), time("p90"), time("p99"), time("p999"), time("max"), mark});
    for (std::size_t i = 0; i < lines.size(); ++i) {
      const Json& value = at_path(point, std::string("corrected_claim_ns.") + kMembers[i]);
      if (value.is_number())
        lines[i].points.emplace_back(point.at("offered").get<double>(), value.get<double>());
    }
  }
  section.tables.push_back(std::move(table));
  const Json& limit = plan.at("slo_limit_ns");
  section.charts.push_back(curve_chart(fmt::format("curve-{}", index),
                                       "Latency from the due time over the offered rate", lines,
                                       limit.is_number() ? limit.get<double>() : 0,
                                       limit.is_number() ? text_figure(plan, "slo") : ""));
  return section;
}

}  // namespace

Page page_of_capacity(const Json& document) {
  Page page;
  page.title = "Capacity";
  const Json& plan = document.at("plan");
  for (const Json& curve : document.at("curves")) add_verdict(page, curve, plan);
  PageSection method;
  method.title = "How to read it";
  method.paragraphs.push_back(fmt::format(
      "{} clients offer claims at a rate, whether or not the store keeps up (open loop); latency "
      "counts from the moment a claim was due. {} rounds a step. The knee is the last rate before "
      "p99 exceeds {} times that of the lightest load, or the rate is not reached. Where a rate is "
      "not reached the queue grows, and latency grows with the length of the run.",
      count_figure(document, "workload.clients"), count_figure(plan, "rounds"),
      rate_figure(plan, "knee_factor")));
  page.sections.push_back(std::move(method));
  std::size_t index = 0;
  for (const Json& curve : document.at("curves")) {
    if (!curve.at("skipped").is_string())
      page.sections.push_back(curve_section(curve, plan, index++));
  }
  return page;
}

}  // namespace idem::bench
