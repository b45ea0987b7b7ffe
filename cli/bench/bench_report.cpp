// idem bench report: the page of an earlier measurement, made again from its numbers.
#include "bench/bench_commands.hpp"
#include "bench/bench_output.hpp"
#include "options.hpp"
#include "report/page.hpp"

namespace idem::cli {

namespace {

struct ReportOptions {
  std::string results;
  std::string out;
};

ExitCode report(const ReportOptions& options, Context& context) {
  const Json document = Json::parse(read_file(options.results), nullptr, false);
  if (document.is_discarded()) throw Failure::usage(options.results + " is not JSON");
  must(bench::page_of(document), options.results);
  check_out(options.out);
  if (options.out.empty() || context.json) print_report(context, document);
  if (!options.out.empty()) save_report(options.out, document);
  return ExitCode::done;
}

}  // namespace

void add_bench_report(CLI::App& family, Context& context) {
  auto options = std::make_shared<ReportOptions>();
  CLI::App* leaf = add_leaf(
      family, context, "report", "Make the report of a results.json again",
      {"idem bench report results.json", "idem bench report results.json --out report"}, kNoStore);
  leaf->add_option("RESULTS", options->results, "results.json of any measurement")
      ->type_name("")
      ->required();
  add_text(leaf, "--out", options->out, "directory for report.html, report.md and report.csv");
  on_run(leaf, context, options, report);
}

}  // namespace idem::cli
