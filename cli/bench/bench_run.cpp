// idem bench run: measures stores side by side and proves what they did.
#include <fmt/core.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>

#include "bench/bench_commands.hpp"
#include "bench/bench_options.hpp"
#include "bench/bench_output.hpp"
#include "bench/bench_progress.hpp"
#include "load/render.hpp"
#include "load/units.hpp"
#include "stop_on_signal.hpp"

namespace idem::cli {

namespace {

ExitCode verdict(const bench::Report& report, bool strict) {
  if (report.interrupted) return StopOnSignal::exit_code();
  if (report.any_void()) return ExitCode::check_failed;
  const bool measured = std::any_of(report.rows.begin(), report.rows.end(),
                                    [](const bench::Row& row) { return row.skipped.empty(); });
  if (!measured) return ExitCode::unreachable;
  const bool doubtful =
      !report.warnings.empty() ||
      std::any_of(report.rows.begin(), report.rows.end(), [](const bench::Row& row) {
        return row.client_bound || !row.reached || !row.skipped.empty();
      });
  return strict && doubtful ? ExitCode::check_failed : ExitCode::done;
}

void tell_plan(const bench::SessionOptions& session, std::size_t subjects) {
  tell(fmt::format(
      "plan     {} store{} x {} client count{} x {} rounds of {}, interleaved, about {} (Ctrl-C "
      "keeps what is done)",
      subjects, subjects == 1 ? "" : "s", session.clients.size(),
      session.clients.size() == 1 ? "" : "s", session.rounds + 1,
      bench::duration_text(session.round_time.count() * 1000),
      bench::duration_text(bench::planned_time(session, subjects).count() * 1000)));
}

ExitCode run(const BenchOptions& options, Context& context) {
  const auto subjects = bench_subjects(options.stores);
  const bench::SessionOptions session = session_options(options, subjects.size());
  check_out(options.out);
  bench::Report report;
  report.version = IDEM_VERSION;
  report.started = started_text();
  report.command = command_text();
  report.machine = bench::look_at_machine(std::filesystem::temp_directory_path().string());
  report.warnings = bench::doubts_about(report.machine);
  report.workload = session.workload;
  const std::size_t width = text_width(STDOUT_FILENO);
  if (!context.json) {
    print_text(bench::header_text(report, width));
    std::fflush(stdout);
  }
  const StopOnSignal stop;  // before anybody can know that it runs
  tell_plan(session, subjects.size());
  {
    BenchProgress progress;
    bench::run_session(
        session, subjects, system_clock(), stop.flag(),
        [&](const bench::Progress& now) { progress.show(now); }, report);
  }
  if (context.json) {
    print_text(bench::to_json(report).dump() + "\n");
  } else {
    print_text("\n" + bench::results_text(report, width));
  }
  if (!options.out.empty()) save_report(options.out, bench::to_json(report));
  return verdict(report, options.strict);
}

}  // namespace

void add_bench_run(CLI::App& family, Context& context) {
  auto options = std::make_shared<BenchOptions>();
  CLI::App* leaf = add_leaf(
      family, context, "run",
      "Measure stores side by side; exit 1 if one ran a request twice or gave a wrong replay",
      {"idem bench run --quick", "idem bench run --stores sqlite --clients 1,64",
       "idem bench run --stores memory,sqlite:orders.db --keys hot:64 --out results"},
      kNoStore);
  add_bench_options(leaf, *options);
  on_run(leaf, context, options, run);
}

}  // namespace idem::cli
