#include <fmt/core.h>

#include <algorithm>

#include "report/charts.hpp"
#include "report/figures.hpp"
#include "report/page.hpp"

namespace idem::bench {
namespace {

void add_notes(Page& page, const Json& rows) {
  for (const Json& row : rows) {
    const Json& faults = at_path(row, "faults");
    for (const Json& fault : faults.is_array() ? faults : Json::array()) {
      const std::string where = row.contains("keys")
                                    ? fmt::format(", {}, {} clients", text_figure(row, "keys"),
                                                  count_figure(row, "clients"))
                                    : ", storm";
      page.notes.push_back({PageNote::Kind::fault, text_figure(row, "contender") + where + ": " +
                                                       fault.get<std::string>()});
    }
  }
}

void add_verdicts(Page& page, const Json& document) {
  for (const Json& row : document.at("storm")) {
    if (!row.contains("duplicates_meet") || row.value("void", false)) continue;
    page.notes.push_back(
        {PageNote::Kind::verdict,
         fmt::format(
             "{}: a duplicate {} (median {}, the first works {})", text_figure(row, "contender"),
             row.at("duplicates_meet") == "refused at once" ? "is refused at once"
                                                            : text_figure(row, "duplicates_meet"),
             time_figure(row, "loser_ns.p50"), time_figure(document, "plan.work_ns"))});
  }
}

PageSection storm_section(const Json& document) {
  PageSection section;
  section.title = "Duplicate storm";
  section.paragraphs.push_back(fmt::format(
      "{} clients claim one key at once. The one that wins works for {}; the others go on asking "
      "as long as it does. Afterwards everybody asks again and must get the first result.",
      count_figure(document, "plan.storm_clients"), time_figure(document, "plan.work_ns")));
  PageTable table;
  table.caption =
      "LOSER: from asking to the answer, of duplicates sent while the first still worked. TRIPS: "
      "calls to the store, or statements, for one claim of a loser and for a winner's claim and "
      "complete. LOCK WAITS: waits for another's lock, of all rounds. IDS BURNT: numbers of an "
      "AUTO_INCREMENT taken by claims that did not win.";
  table.columns = {{"CONTENDER", false, 0},
                   {"TIER", false, 5},
                   {"A DUPLICATE", false, 1},
                   {"LOSER P50", true, 0},
                   {"P99", true, 0},
                   {"REFUSALS/S", true, 2},
                   {"WINNER CLAIM P50", true, 4},
                   {"P99", true, 8},
                   {"TRIPS LOSE", true, 3},
                   {"WIN", true, 6},
                   {"LOCK WAITS", true, 7},
                   {"DEADLOCKS", true, 10},
                   {"RETRIES", true, 9},
                   {"IDS BURNT", true, 11}};
  std::vector<IntervalBar> bars;
  for (const Json& row : document.at("storm")) {
    if (!row.contains("loser_ns")) continue;
    table.rows.push_back(
        {text_figure(row, "contender"), text_figure(row, "tier"),
         row.value("void", false) ? "VOID" : text_figure(row, "duplicates_meet"),
         time_figure(row, "loser_ns.p50"), time_figure(row, "loser_ns.p99"),
         rate_figure(row, "refusals_per_second"), time_figure(row, "winner_claim_ns.p50"),
         time_figure(row, "winner_claim_ns.p99"), rate_figure(row, "trips_per_loser"),
         rate_figure(row, "trips_per_winner"), count_figure(row, "lock_waits"),
         count_figure(row, "deadlocks"), count_figure(row, "loser_costs.retries"),
         count_figure(row, "ids_burnt")});
    const Json& loser = row.at("loser_ns");
    if (loser.is_object())
      bars.push_back({text_figure(row, "contender"), loser.at("p50").get<double>(),
                      loser.at("min").get<double>(), loser.at("p99").get<double>()});
  }
  section.tables.push_back(std::move(table));
  if (!bars.empty()) {
    section.charts.push_back(
        interval_chart("storm", "How long a duplicate waits for its answer", bars, Unit::nanos,
                       document.at("plan").at("work_ns").get<double>(), "the first works"));
    section.charts.back().caption =
        "Median of the losers, from the quickest to the 99th percentile.";
  }
  return section;
}

PageSection grid_section(const Json& document, const std::string& keys) {
  PageSection section;
  section.title = "Claims answered per second, keys " + keys;
  if (keys.starts_with("hot"))
    section.paragraphs.push_back(
        fmt::format("Each hot key is claimed {} times and then gives way to a new one.",
                    count_figure(document, "plan.claims_of_hot_key")));
  PageTable table;
  table.title = "keys " + keys;
  table.caption =
      "OF BARE: the rate as a multiple of the bare protocol's, measured in the same rounds; none "
      "where the "
      "shares of winners differ twofold.";
  table.columns = {{"CONTENDER", false, 0}, {"TIER", false, 3},      {"CLIENTS", true, 0},
                   {"CLAIMS/S", true, 0},   {"95% CI", false, 8},    {"OF BARE", true, 1},
                   {"WON", true, 4},        {"WINNER P50", true, 5}, {"P99", true, 6},
                   {"LOSER P50", true, 5},  {"P99", true, 6},        {"TRIPS", true, 7},
                   {"LOCK WAITS", true, 9}, {"DEADLOCKS", true, 10}, {"IDS BURNT", true, 11},
                   {"", false, 0}};
  std::vector<std::string> columns;
  std::vector<std::string> rows;
  std::vector<HeatCell> cells;
  const auto index_in = [](std::vector<std::string>& all, const std::string& name) {
    const auto found = std::find(all.begin(), all.end(), name);
    if (found != all.end()) return static_cast<std::size_t>(found - all.begin());
    all.push_back(name);
    return all.size() - 1;
  };
  for (const Json& row : document.at("grid")) {
    if (row.at("keys") != keys || !row.contains("rate")) continue;
    table.rows.push_back({text_figure(row, "contender"), text_figure(row, "tier"),
                          count_figure(row, "clients"), rate_figure(row, "rate.median"),
                          interval_figure(row, "rate.ci95"), ratio_figure(row, "ratio_to_bare"),
                          share_figure(row, "won_share"), time_figure(row, "winner_ns.p50"),
                          time_figure(row, "winner_ns.p99"), time_figure(row, "loser_ns.p50"),
                          time_figure(row, "loser_ns.p99"), rate_figure(row, "trips_per_claim"),
                          count_figure(row, "lock_waits"), count_figure(row, "deadlocks"),
                          count_figure(row, "ids_burnt"), row.value("void", false) ? "VOID" : ""});
    cells.push_back({index_in(columns, count_figure(row, "clients") +
                                           (row.at("clients") == 1 ? " client" : " clients")),
                     index_in(rows, text_figure(row, "contender")),
                     row.at("rate").at("median").get<double>()});
  }
  section.tables.push_back(std::move(table));
  section.charts.push_back(
      heat_chart("grid-" + keys, "Claims per second, keys " + keys, columns, rows, cells));
  return section;
}

PageSection contenders_section(const Json& document) {
  PageSection section;
  section.title = "Who took part";
  section.on_terminal = false;
  PageTable table;
  table.columns = {{"CONTENDER", false, 0},
                   {"TIER", false, 0},
                   {"WHAT A CLAIM IS", false, 0},
                   {"HELD AGAINST", false, 0}};
  for (const Json& one : document.at("contenders"))
    table.rows.push_back({text_figure(one, "contender"), text_figure(one, "tier"),
                          text_figure(one, "how"), text_figure(one, "against")});
  section.tables.push_back(std::move(table));
  return section;
}

}  // namespace

Page page_of_contention(const Json& document) {
  Page page;
  page.title = "Contention: SET NX against the unique index, and the rest";
  add_verdicts(page, document);
  for (const Json& one : document.at("contenders")) {
    if (one.at("skipped").is_string())
      page.notes.push_back({PageNote::Kind::note, text_figure(one, "contender") +
                                                      " skipped: " + text_figure(one, "skipped")});
  }
  add_notes(page, document.at("storm"));
  add_notes(page, document.at("grid"));
  page.sections.push_back(storm_section(document));
  for (const Json& keys : document.at("plan").at("keys"))
    page.sections.push_back(grid_section(document, keys.get<std::string>()));
  page.sections.push_back(contenders_section(document));
  return page;
}

}  // namespace idem::bench
