// idem bench choose: measures the candidates under stated needs and recommends one.
#include <fmt/core.h>

#include <algorithm>

#include "bench/bench_commands.hpp"
#include "bench/bench_options.hpp"
#include "bench/bench_output.hpp"
#include "bench/bench_progress.hpp"
#include "choose/choose.hpp"
#include "choose/private_store.hpp"
#include "load/units.hpp"
#include "stop_on_signal.hpp"

namespace idem::cli {

namespace {

using namespace std::chrono_literals;

constexpr Micros kQuickTime = 35s;
constexpr Micros kUsualTime = 150s;

struct ChooseChoice {
  std::vector<std::string> stores;
  std::string duplicates = "5%";
  std::string durability = "process";
  std::string slo;
  std::string max_errors = "1%";
  std::optional<std::uint64_t> rate;
  std::optional<std::uint64_t> clients;
  std::optional<std::uint64_t> processes;
  std::optional<std::uint64_t> hosts;
  std::optional<std::uint64_t> payload;
  std::optional<std::uint64_t> rounds;
  std::optional<std::uint64_t> seed;
  std::optional<Duration> time;
  std::string out;
  bool quick = false;
};

Durability parse_tier(const std::string& text) {
  for (const Durability tier : {Durability::none, Durability::process, Durability::power}) {
    if (bench::to_string(tier) == text) return tier;
  }
  throw Failure::usage("--durability: '" + text + "' is not none, process or power");
}

bench::Needs needs_of(const ChooseChoice& choice) {
  bench::Needs needs;
  needs.rate = static_cast<double>(choice.rate.value_or(0));
  needs.clients = narrow("--clients", choice.clients, 16, 1024);
  needs.processes = narrow("--processes", choice.processes, 1, 1'000'000);
  needs.hosts = narrow("--hosts", choice.hosts, 1, 1'000'000);
  needs.processes = std::max(needs.processes, needs.hosts);
  needs.duplicates = parse_share("--duplicates", choice.duplicates);
  needs.payload = narrow("--payload", choice.payload, 256, kResultBytesDefault);
  needs.durability = parse_tier(choice.durability);
  needs.max_errors = parse_share("--max-errors", choice.max_errors);
  if (choice.slo.empty()) return needs;
  if (needs.rate <= 0)
    throw Failure::usage("--slo needs --rate: without a rate there is no latency to be judged");
  needs.slo = must(bench::parse_slo(choice.slo), "--slo");
  return needs;
}

std::vector<bench::Subject> subjects_of(const ChooseChoice& choice, Durability tier) {
  std::vector<bench::Subject> subjects = bench_subjects(choice.stores);
  for (bench::Subject& subject : subjects) {
    const bool plain = subject.is_private && subject.name.find('/') == std::string::npos;
    if (plain) subject = bench::private_subject(subject.name, tier, system_clock());
  }
  return subjects;
}

ExitCode verdict(const bench::Choice& choice) {
  if (choice.interrupted) return StopOnSignal::exit_code();
  const auto& all = choice.candidates;
  if (std::any_of(all.begin(), all.end(), [](const auto& one) { return !one.broken.empty(); }))
    return ExitCode::check_failed;
  if (std::all_of(all.begin(), all.end(), [](const auto& one) { return !one.skipped.empty(); }))
    return ExitCode::unreachable;
  return choice.decision.chosen ? ExitCode::done : ExitCode::check_failed;
}

ExitCode choose(const ChooseChoice& asked, Context& context) {
  bench::ChooseOptions options;
  options.needs = needs_of(asked);
  options.rounds = narrow("--rounds", asked.rounds, options.rounds, 100);
  options.seed = asked.seed.value_or(1);
  options.budget = asked.time.value_or(asked.quick ? kQuickTime : kUsualTime);
  const auto subjects = subjects_of(asked, options.needs.durability);
  const bench::ChoosePlan plan = bench::plan_choice(options, subjects.size());
  must(bench::check_workload(plan.capacity.workload));
  if (plan.at_rate) must(bench::check_workload(plan.at_rate->workload));
  check_out(asked.out);
  Json document = new_document("choose");
  const StopOnSignal stop;  // before anybody can know that it runs
  tell(
      fmt::format("plan     {} stores x {} rounds{}, interleaved, about {} (Ctrl-C keeps what is "
                  "done)",
                  subjects.size(), options.rounds + 1,
                  plan.at_rate ? " of a closed and of an open loop" : " of a closed loop",
                  bench::duration_text(plan.planned(subjects.size()).count() * 1000)));
  bench::Machine machine;
  machine.cores = document.at("machine").at("cores").get<unsigned>();
  bench::Choice found;
  {
    BenchProgress progress;
    found = bench::run_choice(
        options, subjects, machine, system_clock(), stop.flag(),
        [&](const bench::Progress& now, bool at_rate) {
          progress.show(now.done, now.all, now.subject + (at_rate ? " at the rate" : " capacity"),
                        now.left);
        });
  }
  document.update(bench::to_json(found));
  deliver(context, document, asked.out);
  return verdict(found);
}

}  // namespace

void add_bench_choose(CLI::App& family, Context& context) {
  auto options = std::make_shared<ChooseChoice>();
  CLI::App* leaf = add_leaf(
      family, context, "choose",
      "Measure the stores under your needs and recommend the simplest that meets them",
      {"idem bench choose --quick",
       "idem bench choose --rate 200 --clients 8 --slo 'p99<50ms' --processes 4 --out choice"},
      kNoStore);
  add_stores(leaf, options->stores, "candidates",
             "a private store of every backend, set to the tier");
  add_positive(leaf, "--rate", options->rate, "claims a second that you expect", "not said");
  add_count(leaf, "--clients", options->clients, "callers at once", "16");
  add_count(leaf, "--processes", options->processes, "that share the store", "1");
  add_count(leaf, "--hosts", options->hosts, "that share the store", "1");
  add_text(leaf, "--duplicates", options->duplicates, "share of requests that repeat a recent one",
           "5%");
  add_count(leaf, "--payload", options->payload, "bytes of a result", "256");
  add_text(leaf, "--durability", options->durability,
           "an answered claim survives at least: none, process (the store's crash), power",
           "process");
  add_text(leaf, "--slo", options->slo, "latency goal at the rate: p99<5ms");
  add_text(leaf, "--max-errors", options->max_errors, "share of failed requests", "1%");
  add_count(leaf, "--rounds", options->rounds, "that count; one more warms up", "6");
  add_duration(leaf, "--time", options->time, "of the whole run, about", "2m30s, with --quick 35s");
  add_count(leaf, "--seed", options->seed, "same seed, same keys and duplicates", "1");
  add_text(leaf, "--out", options->out, "directory for results.json and the report");
  leaf->add_flag("--quick", options->quick, "less precise, in less than 60s");
  on_run(leaf, context, options, choose);
}

}  // namespace idem::cli
