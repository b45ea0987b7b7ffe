#include "load/render.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <set>

#include "idem/store_url.hpp"
#include "load/table.hpp"
#include "load/units.hpp"

namespace idem::bench {
namespace {

std::string paragraph(const std::string& text, std::size_t width, std::size_t indent) {
  return wrapped(text, width, indent) + '\n';
}

std::string load_text(const Report& report) {
  const Workload& w = report.workload;
  std::string text = w.rate > 0 ? fmt::format("open loop at {}/s", si(w.rate)) : "closed loop";
  text += ", keys " + to_string(w.keys);
  if (w.duplicates > 0) text += ", duplicates " + percent(w.duplicates);
  if (w.crashes > 0)
    text += fmt::format(", crashes {} (lease {})", percent(w.crashes), format_duration(w.lease));
  if (w.callers == Callers::async) text += ", clients share one thread";
  if (w.work > Micros(0)) text += ", work " + format_duration(w.work);
  text += fmt::format(", results of {} bytes, seed {}", w.payload, w.seed);
  return text;
}

std::string mark_of(const Row& row) {
  if (!row.skipped.empty()) return "skipped";
  if (row.is_void()) return "VOID";
  if (!row.reached) return "rate not reached";
  return row.client_bound ? "client-bound" : "";
}

std::string interval_text(const Row& row) {
  const auto interval = row.rate().ci95;
  return interval ? fmt::format("[{}, {}]", si(interval->low), si(interval->high)) : "-";
}

std::string quantile_text(const Latencies& latencies, Role role, double q) {
  return duration_text(latencies[static_cast<std::size_t>(role)].quantile(q));
}

Table results_table(const Report& report) {
  const bool open = report.workload.rate > 0;
  std::vector<Table::Column> columns{
      {"STORE", false, 0},  {"TIER", false, 2},   {"CLIENTS", true, 0}, {"CLAIMS/S", true, 0},
      {"95% CI", false, 9}, {"WIN P50", true, 7}, {"P99", true, 5}};
  if (open) columns.push_back({"FROM DUE", true, 1});
  for (const Table::Column& column : std::vector<Table::Column>{{"COMPLETE P99", true, 8},
                                                                {"REPLAY P99", true, 4},
                                                                {"BUSY P99", true, 6},
                                                                {"TAKEOVER P99", true, 3},
                                                                {"LONGEST", true, 0},
                                                                {"ERRORS", true, 1},
                                                                {"", false, 0}})
    columns.push_back(column);
  Table table(columns);
  for (const Row& row : report.rows) {
    const bool shown = row.skipped.empty();
    const Latencies& from_send = row.total.uncorrected;
    std::vector<std::string> cells{row.store,
                                   shown ? std::string(to_string(row.durability)) : "-",
                                   std::to_string(row.clients),
                                   shown ? si(row.rate().median) : "-",
                                   shown ? interval_text(row) : "-",
                                   quantile_text(from_send, Role::winner, 0.5),
                                   quantile_text(from_send, Role::winner, 0.99)};
    if (open) cells.push_back(quantile_text(row.total.corrected, Role::winner, 0.99));
    cells.push_back(quantile_text(from_send, Role::complete, 0.99));
    cells.push_back(quantile_text(from_send, Role::replay, 0.99));
    cells.push_back(quantile_text(from_send, Role::in_progress, 0.99));
    cells.push_back(quantile_text(from_send, Role::takeover, 0.99));
    cells.push_back(shown ? duration_text(row.longest_wait()) : "-");
    cells.push_back(shown ? std::to_string(row.total.error_count()) : "-");
    cells.push_back(mark_of(row));
    table.add(std::move(cells));
  }
  return table;
}

// "sqlite  64 clients 7.1x of 1": what company brings to a store that commits in groups.
std::string scaling_text(const Report& report, std::size_t width) {
  std::string out;
  std::set<std::string> told;
  for (const Row& base : report.rows) {
    if (!base.skipped.empty() || base.is_void() || !told.insert(base.store).second) continue;
    std::string line;
    for (const Row& row : report.rows) {
      if (row.store != base.store || row.clients == base.clients || !row.skipped.empty() ||
          row.is_void() || base.rate().median <= 0)
        continue;
      line += fmt::format("{}{} clients {:.2g}x", line.empty() ? "" : ", ", row.clients,
                          row.rate().median / base.rate().median);
    }
    if (!line.empty())
      out += paragraph(
          fmt::format("scaling  {}: {} the rate of {}", base.store, line, base.clients), width, 9);
  }
  return out;
}

std::string checks_text(const Report& report, std::size_t width) {
  Checks all;
  for (const Row& row : report.rows) all.add(row.total.checks);
  const std::uint64_t settled = all.keys - all.unsettled;
  std::string text =
      fmt::format("checks   executed exactly once {}/{}   replays equal to first {}/{}", all.once,
                  settled, all.replays - std::min(all.replays, all.wrong_replays), all.replays);
  if (all.unsettled > 0)
    text += fmt::format("   no verdict on {} (a call ended without an answer)", all.unsettled);
  return paragraph(text, width, 9);
}

std::string row_notes(const Row& row, std::size_t width) {
  const std::string name =
      fmt::format("{} with {} client{}", row.store, row.clients, row.clients == 1 ? "" : "s");
  std::string out;
  if (!row.skipped.empty()) return paragraph("skipped  " + name + ": " + row.skipped, width, 9);
  for (const std::string& fault : row.faults)
    out += paragraph("VOID     " + name + ": " + fault, width, 9);
  if (row.total.error_count() > 0) {
    std::string codes;
    for (const auto& [code, count] : row.total.errors) codes += fmt::format(" {} {}", code, count);
    out += paragraph(fmt::format("errors   {}:{}; attempted {}/s, successful {}/s", name, codes,
                                 si(summarize(row.attempts).median), si(row.rate().median)),
                     width, 9);
  }
  return out;
}

}  // namespace

std::string header_text(const Report& report, std::size_t width) {
  const Machine& m = report.machine;
  std::string machine =
      fmt::format("machine  {}, {} core{}{}, {}, {}", m.cpu, m.cores, m.cores == 1 ? "" : "s",
                  m.is_virtual ? " (virtual)" : "", m.kernel, m.filesystem);
  if (m.fdatasync_p50)
    machine += fmt::format(", fdatasync p50 {} p99 {}", duration_text(m.fdatasync_p50),
                           duration_text(m.fdatasync_p99));
  return paragraph(fmt::format("idem {}  {}  {}", report.version, m.build, m.compiler), width, 2) +
         paragraph(machine, width, 9) + paragraph("load     " + load_text(report), width, 9);
}

std::string results_text(const Report& report, std::size_t width) {
  std::string out = results_table(report).text(width);
  out += checks_text(report, width);
  out += scaling_text(report, width);
  for (const Row& row : report.rows) out += row_notes(row, width);
  if (report.rounds < kRoundsForInterval)
    out += paragraph(
        fmt::format("note     {} rounds: too few for an interval or a comparison", report.rounds),
        width, 9);
  for (const Row& row : report.rows) {
    if (!row.reached && row.skipped.empty())
      out += paragraph(fmt::format("note     {}: offered {}/s, achieved {}/s: the queue grows, "
                                   "latency from due time is not steady",
                                   row.store, si(report.workload.rate), si(row.rate().median)),
                       width, 9);
  }
  const bool bound = std::any_of(report.rows.begin(), report.rows.end(),
                                 [](const Row& row) { return row.client_bound; });
  if (bound)
    out += paragraph(
        "note     client-bound: the clients were as busy as they can be, the store "
        "could do more",
        width, 9);
  for (const std::string& warning : report.warnings)
    out += paragraph("warning  " + warning, width, 9);
  if (report.interrupted) out += "interrupted: only complete rounds count\n";
  return out;
}

}  // namespace idem::bench
