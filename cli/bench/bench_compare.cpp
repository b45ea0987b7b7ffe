// idem bench compare: two results.json against each other.
#include "bench/bench_commands.hpp"
#include "bench/comparison.hpp"
#include "options.hpp"

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

ExitCode compare(const CompareOptions& options, Context& context) {
  const double limit = parse_fail_on(options.fail_on);
  const auto rows = must(bench::compare(read_json(options.before), read_json(options.after)),
                         options.before + " and " + options.after);
  print_comparison(context, rows, "rounds");
  return exit_code(rows, limit);
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
  add_fail_on(leaf, options->fail_on);
  on_run(leaf, context, options, compare);
}

}  // namespace idem::cli
