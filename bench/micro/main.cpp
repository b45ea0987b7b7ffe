// idem_benchmarks: micro benchmarks over every store of this build, by Google Benchmark. Its JSON
// output works with that project's tools/compare.py.
//
// Read rates, not the "Time" column: with several threads version 1.7 shows wall time divided by
// their number. Its "Library was built as DEBUG" is about the harness of the distribution; the line
// idem_build is about what is measured.
#include <benchmark/benchmark.h>

#include <cstdio>
#include <string>

#include "load/machine.hpp"
#include "micro/benchmarks.hpp"

int main(int argc, char** argv) {
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 2;
  const std::string build = idem::bench::build_type();
  const bool valid = idem::bench::is_release_build();
  benchmark::AddCustomContext("idem_build", build);
  benchmark::AddCustomContext("idem_valid", valid ? "yes" : "no: not a release build");
  idem::bench::register_core_benchmarks();
  idem::bench::register_store_benchmarks();
  benchmark::RunSpecifiedBenchmarks();
  if (!valid)
    std::fprintf(stderr, "NOT VALID as a measurement: this build is '%s'; use the release preset\n",
                 build.c_str());
  benchmark::Shutdown();
  return 0;
}
