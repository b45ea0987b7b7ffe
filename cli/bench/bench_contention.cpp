// idem bench contention: claims of few keys by many, and duplicates of a running request.
#include <fmt/core.h>
#include <unistd.h>

#include <algorithm>
#include <set>
#include <sstream>

#include "bench/bench_commands.hpp"
#include "bench/bench_options.hpp"
#include "bench/bench_output.hpp"
#include "bench/bench_progress.hpp"
#include "contention/contention.hpp"
#include "load/table.hpp"
#include "load/units.hpp"
#include "stop_on_signal.hpp"

namespace idem::cli {

namespace {

using namespace std::chrono_literals;

constexpr Micros kQuickTime = 18s;
constexpr Micros kUsualTime = 150s;
constexpr std::uint32_t kStormClientsMax = 64;

struct ContentionChoice {
  std::vector<std::string> stores;
  std::vector<std::string> clients;
  std::vector<std::string> keys;
  std::optional<std::uint64_t> storm_clients;
  std::optional<std::uint64_t> rounds;
  std::optional<std::uint64_t> seed;
  std::optional<Duration> work;
  std::optional<Duration> time;
  std::string out;
  bool quick = false;
  bool strict = false;
};

// Where the variants of a backend are different designs, not different places, each takes part.
std::vector<std::string> usual_stores() {
  const std::set<std::string, std::less<>> designs{"mysql", "tiered"};
  std::vector<std::string> names;
  for (const Backend& backend : backends()) {
    if (designs.count(backend.name) == 0 || backend.variants.empty()) {
      names.push_back(backend.name);
    } else {
      for (const std::string& variant : backend.variants)
        names.push_back(variant.empty() ? backend.name : backend.name + "/" + variant);
    }
  }
  return names;
}

bench::ContentionOptions contention_options(const ContentionChoice& choice) {
  bench::ContentionOptions options;
  if (choice.quick) options.clients = {8};
  if (!choice.clients.empty()) options.clients = parse_clients(choice.clients);
  if (!choice.keys.empty()) options.keys.clear();
  for (const std::string& text : choice.keys) {
    const bench::KeyChoice keys = must(bench::parse_key_choice(text), "--keys");
    if (keys.kind == bench::KeyKind::zipf)
      throw Failure::usage("--keys: unique or hot:N here; zipf is for idem bench run");
    options.keys.push_back(keys);
  }
  options.storm_clients = narrow("--storm", choice.storm_clients, 8, kStormClientsMax);
  if (options.storm_clients < 2) throw Failure::usage("--storm: at least 2, or nobody is refused");
  options.rounds = narrow("--rounds", choice.rounds, options.rounds, 100);
  options.seed = choice.seed.value_or(1);
  options.work = choice.work.value_or(choice.quick ? Duration(30ms) : Duration(50ms));
  if (options.work > Micros(10s)) throw Failure::usage("--work: at most 10s");
  return options;
}

// The stores that were opened; they own what the contenders use.
struct Field {
  std::vector<bench::Place> places;
  std::vector<bench::Contender> contenders;
};

// The backends of a private tier, front first: "tiered", "tiered/memory+redis+mysql".
std::vector<std::string> layers_of(const bench::Subject& subject) {
  if (!subject.is_private || !subject.name.starts_with("tiered")) return {};
  const std::size_t slash = subject.name.find('/');
  std::istringstream all(slash == std::string::npos ? "memory+sqlite"
                                                    : subject.name.substr(slash + 1));
  std::vector<std::string> layers;
  for (std::string one; std::getline(all, one, '+');) layers.push_back(one);
  return layers;
}

result<bench::Place> open_place(const bench::Subject& subject) {
  const auto layers = layers_of(subject);
  if (layers.size() > 1) return bench::counted_tier(subject.name, layers, system_clock());
  auto fixture = subject.open();
  if (!fixture) return fixture.error();
  return bench::Place{subject.name, std::move(*fixture), subject.is_private};
}

Field open_field(const std::vector<bench::Subject>& subjects) {
  Field field;
  for (const bench::Subject& subject : subjects) {
    auto place = open_place(subject);
    if (!place) {
      bench::Contender absent;
      absent.name = subject.name;
      absent.skipped = std::string(to_string(place.error().code)) + ": " + place.error().message;
      field.contenders.push_back(std::move(absent));
      continue;
    }
    field.places.push_back(std::move(*place));
    auto here = bench::contenders_at(field.places.back(), system_clock());
    std::move(here.begin(), here.end(), std::back_inserter(field.contenders));
  }
  bench::set_against(field.contenders);
  return field;
}

std::string plan_text(const bench::ContentionOptions& o, std::size_t contenders) {
  return fmt::format(
      "plan     {} contenders x {} client counts x {} key choices x {} rounds of {}, and {} storms "
      "of {} duplicates while the first works {}; about {} (Ctrl-C keeps what is done)",
      contenders, o.clients.size(), o.keys.size(), o.rounds + 1,
      bench::duration_text(o.round_time.count() * 1000), o.storms * (o.rounds + 1),
      o.storm_clients - 1, bench::duration_text(o.work.count() * 1000),
      bench::duration_text(bench::planned_time(o, contenders).count() * 1000));
}

ExitCode verdict(const bench::Contention& found, const Json& document, bool strict) {
  if (found.interrupted) return StopOnSignal::exit_code();
  if (found.any_void()) return ExitCode::check_failed;
  if (!found.any_measured()) return ExitCode::unreachable;
  const bool skipped = std::any_of(found.contenders.begin(), found.contenders.end(),
                                   [](const auto& one) { return !one.skipped.empty(); });
  return strict && (skipped || !document.at("warnings").empty()) ? ExitCode::check_failed
                                                                 : ExitCode::done;
}

ExitCode contention(const ContentionChoice& choice, Context& context) {
  const auto subjects = bench_subjects(choice.stores.empty() ? usual_stores() : choice.stores);
  bench::ContentionOptions options = contention_options(choice);
  check_out(choice.out);
  Json document = new_document("contention");
  bench::Contention found;
  {
    const StopOnSignal stop;
    Field field = open_field(subjects);
    options = bench::fit_into(options, field.contenders.size(),
                              choice.time.value_or(choice.quick ? kQuickTime : kUsualTime));
    tell(plan_text(options, field.contenders.size()));
    BenchProgress progress;
    found = bench::run_contention(options, std::move(field.contenders), system_clock(), stop.flag(),
                                  [&](const bench::ContentionStep& step) {
                                    progress.show(step.done, step.all, step.what, step.left);
                                  });
    document.update(bench::to_json(found));
    found.contenders.clear();  // they use the stores of the field
  }
  deliver(context, document, choice.out);
  return verdict(found, document, choice.strict);
}

}  // namespace

void add_bench_contention(CLI::App& family, Context& context) {
  auto options = std::make_shared<ContentionChoice>();
  CLI::App* leaf = add_leaf(
      family, context, "contention",
      "SET NX against the unique index: few keys, many clients, duplicates of a running request",
      {"idem bench contention --quick",
       "idem bench contention --stores redis,sqlite --clients 1,16 --keys hot:1,unique --out c"},
      kNoStore);
  add_stores(leaf, options->stores);
  leaf->add_option("--clients", options->clients, "at once; several: one row each")
      ->type_name("N[,N]")
      ->delimiter(',')
      ->default_str("1,4,16, with --quick 8");
  leaf->add_option("--keys", options->keys, "unique or hot:N; several: one table each")
      ->type_name("KEYS[,KEYS]")
      ->delimiter(',')
      ->default_str("hot:1,hot:64,unique");
  add_count(leaf, "--storm", options->storm_clients, "clients of a duplicate storm", "8");
  add_duration(leaf, "--work", options->work, "how long the first of a storm works",
               "50ms, with --quick 30ms");
  add_count(leaf, "--rounds", options->rounds, "that count; one more warms up", "6");
  add_duration(leaf, "--time", options->time, "of the whole run, about", "2m30s, with --quick 18s");
  add_count(leaf, "--seed", options->seed, "same seed, same keys", "1");
  add_text(leaf, "--out", options->out, "directory for results.json and the report");
  leaf->add_flag("--quick", options->quick, "less precise, in less than 30s");
  leaf->add_flag("--strict", options->strict, "exit 1 also for warnings and skipped stores");
  on_run(leaf, context, options, contention);
}

}  // namespace idem::cli
