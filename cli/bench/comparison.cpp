#include "bench/comparison.hpp"

#include <fmt/core.h>
#include <unistd.h>

#include <algorithm>
#include <limits>

#include "bench/bench_options.hpp"
#include "bench/bench_progress.hpp"
#include "load/table.hpp"
#include "load/units.hpp"

namespace idem::cli {
namespace {

std::string to_text(const std::vector<bench::Comparison>& rows, const std::string& proof) {
  bench::Table table({{"STORE", false, 0},
                      {"CLIENTS", true, 0},
                      {"BEFORE/S", true, 1},
                      {"AFTER/S", true, 1},
                      {"CHANGE", true, 0},
                      {"P", true, 2},
                      {"", false, 0}});
  for (const bench::Comparison& row : rows) {
    const bool known = row.verdict != bench::Verdict::unknown;
    table.add({row.store, std::to_string(row.clients), known ? bench::si(row.before) : "-",
               known ? bench::si(row.after) : "-",
               known ? fmt::format("{:+.1f}%", row.change * 100) : "-",
               row.p ? fmt::format("{:.3f}", *row.p) : "-",
               known ? std::string(to_string(row.verdict)) : "? " + row.reason});
  }
  return table.text(text_width(STDOUT_FILENO)) +
         fmt::format("~ no difference that these {} can prove, or less than {:.0f}%\n", proof,
                     bench::kNoiseUsual * 100);
}

Json to_rows(const std::vector<bench::Comparison>& rows) {
  Json list = Json::array();
  for (const bench::Comparison& row : rows) {
    const bool known = row.verdict != bench::Verdict::unknown;
    list.push_back(Json{{"store", row.store},
                        {"clients", row.clients},
                        {"before", known ? Json(row.before) : Json(nullptr)},
                        {"after", known ? Json(row.after) : Json(nullptr)},
                        {"change", known ? Json(row.change) : Json(nullptr)},
                        {"p", row.p ? Json(*row.p) : Json(nullptr)},
                        {"verdict", to_string(row.verdict)},
                        {"reason", row.reason.empty() ? Json(nullptr) : Json(row.reason)}});
  }
  return list;
}

}  // namespace

void add_fail_on(CLI::App* leaf, std::string& into) {
  add_text(leaf, "--fail-on", into,
           "regression:SHARE: exit 1 if a store is slower by as much, beyond doubt");
}

double parse_fail_on(const std::string& text) {
  constexpr std::string_view kPrefix = "regression:";
  if (text.empty()) return std::numeric_limits<double>::infinity();
  if (!text.starts_with(kPrefix))
    throw Failure::usage("--fail-on: '" + text + "' is not regression:SHARE, as regression:5%");
  return parse_share("--fail-on", text.substr(kPrefix.size()));
}

void print_comparison(const Context& context, const std::vector<bench::Comparison>& rows,
                      const std::string& proof, Json head) {
  if (context.json) {
    head["rows"] = to_rows(rows);
    print_document(head);
  } else {
    print_text(to_text(rows, proof));
  }
}

ExitCode exit_code(const std::vector<bench::Comparison>& rows, double limit) {
  const bool regressed = std::any_of(rows.begin(), rows.end(), [&](const auto& row) {
    return row.verdict == bench::Verdict::slower && -row.change >= limit;
  });
  return regressed ? ExitCode::check_failed : ExitCode::done;
}

}  // namespace idem::cli
