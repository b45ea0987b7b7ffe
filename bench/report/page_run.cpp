// The page of `idem bench run`; its rows also serve the page of `choose`.
#include <fmt/core.h>

#include "report/charts.hpp"
#include "report/figures.hpp"
#include "report/page_rows.hpp"

namespace idem::bench {
namespace {

bool measured(const Json& row) { return at_path(row, "rate").is_object(); }

std::string name_of(const Json& row) {
  return text_figure(row, "store") + " x" + count_figure(row, "clients");
}

std::string mark_of(const Json& row) {
  if (!measured(row)) return "skipped";
  if (row.value("void", false)) return "VOID";
  const Json& reached = at_path(row, "offered_rate_reached");
  if (reached.is_boolean() && !reached.get<bool>()) return "rate not reached";
  return row.value("client_bound", false) ? "client-bound" : "";
}

}  // namespace

PageTable rows_table(const Json& rows, bool open_loop) {
  PageTable table;
  table.columns = {{"STORE", false, 0},       {"TIER", false, 2},        {"CLIENTS", true, 0},
                   {"CLAIMS/S", true, 0},     {"95% CI", false, 9},      {"WIN P50", true, 7},
                   {"P99", true, 5},          {"FROM DUE P50", true, 6}, {"FROM DUE P99", true, 1},
                   {"COMPLETE P99", true, 8}, {"REPLAY P99", true, 4},   {"BUSY P99", true, 6},
                   {"TAKEOVER P99", true, 3}, {"ERRORS", true, 1},       {"", false, 0}};
  for (const Json& row : rows) {
    const auto due = [&](const char* q) {
      return open_loop ? time_figure(row, std::string("corrected_latency_ns.winner.") + q) : "-";
    };
    table.rows.push_back(
        {text_figure(row, "store"), text_figure(row, "durability"), count_figure(row, "clients"),
         rate_figure(row, "rate.median"), interval_figure(row, "rate.ci95"),
         time_figure(row, "latency_ns.winner.p50"), time_figure(row, "latency_ns.winner.p99"),
         due("p50"), due("p99"), time_figure(row, "latency_ns.complete.p99"),
         time_figure(row, "latency_ns.replay.p99"), time_figure(row, "latency_ns.in_progress.p99"),
         time_figure(row, "latency_ns.takeover.p99"), errors_figure(row), mark_of(row)});
  }
  return table;
}

std::string errors_figure(const Json& row) {
  const Json& errors = at_path(row, "errors");
  if (!errors.is_object()) return "-";
  std::string text;
  for (const auto& [code, count] : errors.items())
    text += fmt::format("{}{} {}", text.empty() ? "" : ", ", code, count.dump());
  return text.empty() ? "0" : text;
}

void add_row_notes(Page& page, const Json& rows) {
  for (const Json& row : rows) {
    const Json& skipped = at_path(row, "skipped");
    if (skipped.is_string())
      page.notes.push_back(
          {PageNote::Kind::note, name_of(row) + " skipped: " + skipped.get<std::string>()});
    const Json& faults = at_path(row, "faults");
    for (const Json& fault : faults.is_array() ? faults : Json::array())
      page.notes.push_back({PageNote::Kind::fault, name_of(row) + ": " + fault.get<std::string>()});
    if (mark_of(row) == "rate not reached")
      page.notes.push_back({PageNote::Kind::note,
                            name_of(row) + ": the offered rate was not reached; the queue grows, "
                                           "latency from due time is not steady"});
    if (row.value("client_bound", false))
      page.notes.push_back({PageNote::Kind::note,
                            name_of(row) + " is client-bound: the clients were as busy as they can "
                                           "be, the store could do more"});
  }
}

void add_row_charts(PageSection& section, const std::string& prefix, const Json& rows,
                    bool open_loop) {
  std::vector<IntervalBar> bars;
  std::vector<ChartLine> rounds;
  std::vector<PercentileLine> winners;
  std::vector<PercentileLine> replays;
  for (const Json& row : rows) {
    if (!measured(row) || row.value("void", false)) continue;
    const std::string name = name_of(row);
    const Json& interval = at_path(row, "rate.ci95");
    IntervalBar bar{name + " (" + text_figure(row, "durability") + ")",
                    at_path(row, "rate.median").get<double>(),
                    {},
                    {}};
    if (interval.is_array()) {
      bar.low = interval[0].get<double>();
      bar.high = interval[1].get<double>();
    }
    bars.push_back(std::move(bar));
    ChartLine line{name, {}};
    double round = 0;
    for (const Json& rate : at_path(row, "rate.rounds"))
      line.points.emplace_back(++round, rate.get<double>());
    rounds.push_back(std::move(line));
    const char* kind = open_loop ? "corrected_latency_ns." : "latency_ns.";
    winners.push_back({name, at_path(row, std::string(kind) + "winner")});
    replays.push_back({name, at_path(row, std::string(kind) + "replay")});
  }
  if (bars.empty()) return;
  section.charts.push_back(
      interval_chart(prefix + "-rate", "Claims answered per second", bars, Unit::per_second));
  section.charts.back().caption =
      "Median of the rounds and its 95% interval, logarithmic. The tier stands beside the name: "
      "stores of different tiers promise different things and are not ranked against each other.";
  const std::string from = open_loop ? " from the due time" : "";
  for (const PageChart& chart :
       {percentile_chart(prefix + "-winner", "Winner's claim by percentile" + from, winners),
        percentile_chart(prefix + "-replay", "Replay by percentile" + from, replays)}) {
    if (!chart.option.at("series").empty()) section.charts.push_back(chart);
  }
  section.charts.push_back(rounds_chart(prefix + "-rounds", rounds));
}

Page page_of_run(const Json& document) {
  Page page;
  page.title = "Stores side by side";
  const Json& rows = document.at("rows");
  const Json& load = document.at("workload");
  const bool open_loop = load.at("rate").is_number();
  add_row_notes(page, rows);
  PageSection section;
  section.title = "Results";
  section.paragraphs.push_back(fmt::format(
      "{}, {} callers, keys {}, duplicates {}, crashes {}, results of {} bytes, seed {}; {} rounds "
      "of each.",
      open_loop ? "Open loop at " + rate_figure(load, "rate") + " a second" : "Closed loop",
      text_figure(load, "callers"), text_figure(load, "keys"), share_figure(load, "duplicates"),
      share_figure(load, "crashes"), count_figure(load, "payload_bytes"),
      count_figure(load, "seed"), count_figure(document, "plan.rounds")));
  section.tables.push_back(rows_table(rows, open_loop));
  add_row_charts(section, "run", rows, open_loop);
  page.sections.push_back(std::move(section));
  page.sections.push_back(checks_section(rows));
  return page;
}

PageSection checks_section(const Json& rows) {
  PageSection section;
  section.title = "What was proved";
  section.on_terminal = false;
  section.paragraphs.push_back(
      "After every round each key is read back: it ran exactly once, every replay was the first "
      "result byte for byte, nothing was left processing. A violation voids the row.");
  PageTable table;
  table.columns = {{"STORE", false, 0},   {"CLIENTS", true, 0},   {"KEYS", true, 0},
                   {"RAN ONCE", true, 0}, {"REPLAYS", true, 0},   {"WRONG", true, 0},
                   {"LOST", true, 0},     {"NO VERDICT", true, 0}};
  for (const Json& row : rows) {
    if (!measured(row)) continue;
    table.rows.push_back(
        {text_figure(row, "store"), count_figure(row, "clients"), count_figure(row, "checks.keys"),
         count_figure(row, "checks.executed_once"), count_figure(row, "checks.replays"),
         count_figure(row, "checks.wrong_replays"), count_figure(row, "checks.lost_records"),
         count_figure(row, "checks.unsettled")});
  }
  section.tables.push_back(std::move(table));
  return section;
}

}  // namespace idem::bench
