// idem bench compare: two results.json against each other.
#include <fmt/core.h>
#include <unistd.h>

#include <algorithm>
#include <limits>

#include "bench/bench_commands.hpp"
#include "bench/bench_options.hpp"
#include "bench/bench_progress.hpp"
#include "load/compare.hpp"
#include "load/table.hpp"
#include "load/units.hpp"

namespace idem::cli {

namespace {

struct CompareOptions {
  std::string before;
  std::string after;
  std::string fail_on;
};

Json read_json(const std::string& path) {
  Json document = Json::parse(read_file(path), nullptr, false);
  if (document.is_discarded()) throw Failure::usage(path + " is not JSON");
  return document;
}

// "regression:5%": the loss from which on a slower row fails.
double parse_fail_on(const std::string& text) {
  constexpr std::string_view kPrefix = "regression:";
  if (!text.starts_with(kPrefix))
    throw Failure::usage("--fail-on: '" + text + "' is not regression:SHARE, as regression:5%");
  return parse_share("--fail-on", text.substr(kPrefix.size()));
}

std::string to_text(const std::vector<bench::Comparison>& rows) {
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
         "~ no difference that these rounds can prove, or less than 5%\n";
}

Json to_document(const std::vector<bench::Comparison>& rows) {
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
  return Json{{"rows", list}};
}

ExitCode compare(const CompareOptions& options, Context& context) {
  const double limit = options.fail_on.empty() ? std::numeric_limits<double>::infinity()
                                               : parse_fail_on(options.fail_on);
  const auto rows = must(bench::compare(read_json(options.before), read_json(options.after)),
                         options.before + " and " + options.after);
  if (context.json) {
    print_document(to_document(rows));
  } else {
    print_text(to_text(rows));
  }
  const bool regressed = std::any_of(rows.begin(), rows.end(), [&](const auto& row) {
    return row.verdict == bench::Verdict::slower && -row.change >= limit;
  });
  return regressed ? ExitCode::check_failed : ExitCode::done;
}

}  // namespace

void add_bench_compare(CLI::App& family, Context& context) {
  auto options = std::make_shared<CompareOptions>();
  CLI::App* leaf = add_leaf(
      family, context, "compare", "Compare two results.json of the same load",
      {"idem bench compare old/results.json new/results.json --fail-on regression:5%"}, kNoStore);
  leaf->add_option("OLD", options->before, "results.json of the earlier run")
      ->type_name("")
      ->required();
  leaf->add_option("NEW", options->after, "results.json of the later run")
      ->type_name("")
      ->required();
  add_text(leaf, "--fail-on", options->fail_on,
           "regression:SHARE: exit 1 if a store is slower by as much, beyond doubt");
  on_run(leaf, context, options, compare);
}

}  // namespace idem::cli
