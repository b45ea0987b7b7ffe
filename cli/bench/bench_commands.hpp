// The commands of the benchmark's family, each in its own file.
#pragma once

#include <CLI/CLI.hpp>

#include "context.hpp"

namespace idem::cli {

void add_bench_run(CLI::App& family, Context& context);
void add_bench_choose(CLI::App& family, Context& context);
void add_bench_capacity(CLI::App& family, Context& context);
void add_bench_contention(CLI::App& family, Context& context);
void add_bench_compare(CLI::App& family, Context& context);
void add_bench_ab(CLI::App& family, Context& context);
void add_bench_report(CLI::App& family, Context& context);

}  // namespace idem::cli
