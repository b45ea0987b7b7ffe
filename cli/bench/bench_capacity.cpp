// idem bench capacity: the load curve, its knee, and the highest rate within a latency goal.
#include <fmt/core.h>

#include <algorithm>

#include "bench/bench_commands.hpp"
#include "bench/bench_options.hpp"
#include "bench/bench_output.hpp"
#include "bench/bench_progress.hpp"
#include "capacity/capacity.hpp"
#include "load/units.hpp"
#include "stop_on_signal.hpp"

namespace idem::cli {

namespace {

using namespace std::chrono_literals;

constexpr Micros kQuickTime = 18s;
constexpr Micros kUsualTime = 140s;

struct CapacityChoice {
  std::vector<std::string> stores;
  std::string slo;
  std::string duplicates = "5%";
  std::optional<std::uint64_t> clients;
  std::optional<std::uint64_t> payload;
  std::optional<std::uint64_t> rounds;
  std::optional<std::uint64_t> seed;
  std::optional<Duration> time;
  std::string out;
  bool quick = false;
  bool strict = false;
};

bench::CapacityOptions capacity_options(const CapacityChoice& choice) {
  bench::CapacityOptions options;
  options.workload.duplicates = parse_share("--duplicates", choice.duplicates);
  options.workload.payload = narrow("--payload", choice.payload, 64, kResultBytesDefault);
  options.workload.seed = choice.seed.value_or(1);
  must(bench::check_workload(options.workload));
  options.clients = narrow("--clients", choice.clients, 16, 1024);
  options.rounds = narrow("--rounds", choice.rounds, choice.quick ? 1 : 3, 100);
  if (choice.quick) options.shares = {0.1, 0.3, 0.6, 0.8, 1.0};
  if (!choice.slo.empty()) options.slo = must(bench::parse_slo(choice.slo), "--slo");
  return options;
}

ExitCode verdict(const bench::Capacity& found, const Json& document, bool strict) {
  if (found.interrupted) return StopOnSignal::exit_code();
  bool measured = false;
  bool met = false;
  for (const bench::Curve& curve : found.curves) {
    if (!curve.faults.empty()) return ExitCode::check_failed;
    measured = measured || curve.skipped.empty();
    met = met || bench::highest_within(curve.points).has_value();
  }
  if (!measured) return ExitCode::unreachable;
  if (found.options.slo && !met) return ExitCode::check_failed;
  return strict && !document.at("warnings").empty() ? ExitCode::check_failed : ExitCode::done;
}

ExitCode capacity(const CapacityChoice& choice, Context& context) {
  const auto subjects = bench_subjects(choice.stores);
  bench::CapacityOptions options = capacity_options(choice);
  options = bench::fit_into(options, subjects.size(),
                            choice.time.value_or(choice.quick ? kQuickTime : kUsualTime));
  check_out(choice.out);
  Json document = new_document("capacity");
  const StopOnSignal stop;  // before anybody can know that it runs
  tell(fmt::format(
      "plan     {} stores x {} steps x {} rounds of {}, interleaved, about {} (Ctrl-C "
      "keeps what is done)",
      subjects.size(), options.shares.size() + (options.slo ? options.refinements : 0U) + 1,
      options.rounds, bench::duration_text(options.step_time.count() * 1000),
      bench::duration_text(bench::planned_time(options, subjects.size()).count() * 1000)));
  bench::Capacity found;
  {
    BenchProgress progress;
    found = bench::run_capacity(options, subjects, system_clock(), stop.flag(),
                                [&](const bench::CapacityStep& step) {
                                  progress.show(step.done, step.all, step.what, step.left);
                                });
  }
  document.update(bench::to_json(found));
  deliver(context, document, choice.out);
  return verdict(found, document, choice.strict);
}

}  // namespace

void add_bench_capacity(CLI::App& family, Context& context) {
  auto options = std::make_shared<CapacityChoice>();
  CLI::App* leaf = add_leaf(
      family, context, "capacity",
      "The load curve: what callers wait at each rate, the knee, the highest rate within a goal",
      {"idem bench capacity --stores sqlite --slo 'p99<20ms' --quick",
       "idem bench capacity --stores redis --clients 32 --out curve"},
      kNoStore);
  add_stores(leaf, options->stores);
  add_text(leaf, "--slo", options->slo, "latency goal: p99<5ms; exit 1 if no rate meets it");
  add_count(leaf, "--clients", options->clients, "blocking callers at once", "16");
  add_text(leaf, "--duplicates", options->duplicates, "share of requests that repeat a recent one",
           "5%");
  add_count(leaf, "--payload", options->payload, "bytes of a result", "64");
  add_count(leaf, "--rounds", options->rounds, "of each step", "3, with --quick 1");
  add_duration(leaf, "--time", options->time, "of the whole run, about", "2m20s, with --quick 18s");
  add_count(leaf, "--seed", options->seed, "same seed, same keys and duplicates", "1");
  add_text(leaf, "--out", options->out, "directory for results.json and the report");
  leaf->add_flag("--quick", options->quick, "less precise, in less than 30s");
  leaf->add_flag("--strict", options->strict, "exit 1 also for warnings");
  on_run(leaf, context, options, capacity);
}

}  // namespace idem::cli
