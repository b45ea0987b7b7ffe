// idem bench: measuring stores.
#include "bench/bench_commands.hpp"
#include "commands.hpp"

namespace idem::cli {

void add_bench(CLI::App& root, Context& context) {
  CLI::App* family = root.add_subcommand("bench", "Measure stores side by side");
  family->set_help_flag("-h,--help", "this text");
  family->require_subcommand(1);
  family->footer(
      "Examples:\n  idem bench choose --quick\n  idem bench contention --quick --out c\n");
  add_bench_choose(*family, context);
  add_bench_contention(*family, context);
  add_bench_capacity(*family, context);
  add_bench_run(*family, context);
  add_bench_compare(*family, context);
  add_bench_ab(*family, context);
  add_bench_report(*family, context);
}

}  // namespace idem::cli
