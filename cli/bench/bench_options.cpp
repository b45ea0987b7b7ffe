#include "bench/bench_options.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <set>

namespace idem::cli {

namespace {

using namespace std::chrono_literals;

// The rounds' share of a run that says "at most 30 s" (--quick) or "at most 3 min": the rest is
// room for slow audits and for a slow disk.
constexpr Micros kQuickTime = 12s;
constexpr Micros kUsualTime = 60s;
constexpr Micros kTimeMax = 24h;
constexpr Micros kRoundTimeMax = 2s;
constexpr std::uint32_t kQuickOperations = 50'000;
constexpr std::uint32_t kUsualOperations = 200'000;
constexpr std::uint32_t kOperationsMax = 20'000'000;
constexpr std::uint32_t kRoundsUsual = 7;
constexpr std::uint32_t kClientsMax = 1024;

bench::Subject private_subject(const std::string& backend, const std::string& variant,
                               const std::string& name) {
  return {name,
          [backend, variant] {
            OpenOptions options;
            options.clock = &system_clock();
            return make_fixture(backend, variant, options);
          },
          true};
}

bench::Callers parse_callers(const std::string& text) {
  for (const bench::Callers one : {bench::Callers::blocking, bench::Callers::async}) {
    if (bench::to_string(one) == text) return one;
  }
  throw Failure::usage("--callers: '" + text + "' is neither blocking nor async");
}

void check_scheme(const std::string& scheme) {
  std::set<std::string, std::less<>> known;
  for (const Backend& backend : backends())
    known.insert(backend.schemes.begin(), backend.schemes.end());
  if (known.count(scheme) != 0) return;
  std::string message = "--stores: no backend of this build opens '" + scheme + ":'";
  if (const auto meant = nearest(scheme, known)) message += ", did you mean '" + *meant + ":'?";
  throw Failure::usage(message).advise("idem stores");
}

bench::Subject url_subject(const std::string& url) {
  const StoreUrl parsed = must(StoreUrl::parse(url), "--stores");
  check_scheme(parsed.scheme());
  return {parsed.redacted(),
          [url]() -> result<Fixture> {
            auto store = idem::open(url);
            if (!store) return store.error();
            return Fixture{url, nullptr, std::move(*store)};
          },
          false};
}

bench::Subject subject_named(const std::string& text) {
  if (text.find(':') != std::string::npos) return url_subject(text);
  const std::size_t slash = text.find('/');
  const std::string name = text.substr(0, slash);
  const std::string variant = slash == std::string::npos ? "" : text.substr(slash + 1);
  std::set<std::string, std::less<>> known;
  for (const Backend& backend : backends()) {
    const auto& variants = backend.variants;
    if (backend.name == name &&
        (variant.empty() || std::find(variants.begin(), variants.end(), variant) != variants.end()))
      return private_subject(name, variant, text);
    for (const std::string& one : variants)
      known.insert(one.empty() ? backend.name : backend.name + "/" + one);
    known.insert(backend.name);
  }
  std::string message = "--stores: '" + text + "' is neither a URL nor a store of this build";
  if (const auto meant = nearest(text, known)) message += ", did you mean '" + *meant + "'?";
  throw Failure::usage(message).advise("idem stores");
}

}  // namespace

void add_stores(CLI::App* app, std::vector<std::string>& into, const std::string& what,
                const std::string& usual) {
  app->add_option("--stores", into,
                  what + ": URLs, or a backend's name for a private store of its own")
      ->type_name("URL[,URL]")
      ->delimiter(',')
      ->default_str(usual);
}

void add_bench_options(CLI::App* app, BenchOptions& into) {
  add_stores(app, into.stores);
  app->add_option("--clients", into.clients, "callers at once; several: one row each")
      ->type_name("N[,N]")
      ->delimiter(',')
      ->default_str("1,8");
  add_text(app, "--callers", into.callers,
           "blocking: a thread each; async: all on one thread, none of them blocks it", "blocking");
  add_text(app, "--keys", into.keys, "unique, hot:N, zipf:N or zipf:N:SKEW", "unique");
  add_text(app, "--duplicates", into.duplicates, "share of requests that repeat a recent one",
           "10%");
  add_text(app, "--crashes", into.crashes, "share of claims whose owner never reports", "0%");
  add_count(app, "--payload", into.payload, "bytes of a result", "64");
  add_duration(app, "--work", into.work, "between claim and complete", "none");
  add_duration(app, "--lease", into.lease, "of a claim", "30s, with --crashes 200ms");
  add_count(app, "--rate", into.rate, "requests a second, whether or not the store keeps up",
            "closed loop");
  add_count(app, "--rounds", into.rounds, "of each store that count; one more warms up", "7");
  add_duration(app, "--time", into.time, "of the whole run, about", "1m, with --quick 12s");
  add_count(app, "--operations", into.operations, "in a round, at most", "200k, with --quick 50k");
  add_count(app, "--seed", into.seed, "same seed, same keys and duplicates", "1");
  add_text(app, "--max-errors", into.max_errors, "share of failed requests that voids a row", "1%");
  add_duration(app, "--max-wait", into.max_wait, "of one call that voids a row", "1s");
  add_text(app, "--out", into.out, "directory for results.json");
  app->add_flag("--quick", into.quick, "less precise, in less than 30s");
  app->add_flag("--strict", into.strict, "exit 1 also for warnings");
}

std::vector<std::uint32_t> parse_clients(const std::vector<std::string>& texts) {
  std::vector<std::uint32_t> counts;
  for (const std::string& text : texts) {
    std::uint32_t count = 0;
    const auto [end, problem] = std::from_chars(text.data(), text.data() + text.size(), count);
    if (problem != std::errc() || end != text.data() + text.size() || count == 0 ||
        count > kClientsMax)
      throw Failure::usage(
          fmt::format("--clients: '{}' is no number from 1 to {}", text, kClientsMax));
    if (std::find(counts.begin(), counts.end(), count) == counts.end()) counts.push_back(count);
  }
  return counts;
}

std::uint32_t narrow(const char* option, std::optional<std::uint64_t> value, std::uint32_t usual,
                     std::uint32_t most) {
  if (!value) return usual;
  if (*value == 0 || *value > most) throw Failure::usage(fmt::format("{}: 1 to {}", option, most));
  return static_cast<std::uint32_t>(*value);
}

double parse_share(const std::string& option, const std::string& text) {
  const bool percent = text.ends_with('%');
  double value = 0;
  const char* last = text.data() + text.size() - (percent ? 1 : 0);
  const auto [end, problem] = std::from_chars(text.data(), last, value);
  if (percent) value /= 100;
  if (problem != std::errc() || end != last || !(value >= 0 && value <= 1))
    throw Failure::usage(option + ": '" + text + "' is no share: write 5% or 0.05");
  return value;
}

bench::SessionOptions session_options(const BenchOptions& options, std::size_t subjects) {
  bench::SessionOptions session;
  bench::Workload& load = session.workload;
  load.callers = parse_callers(options.callers);
  load.keys = must(bench::parse_key_choice(options.keys), "--keys");
  load.duplicates = parse_share("--duplicates", options.duplicates);
  load.crashes = parse_share("--crashes", options.crashes);
  load.payload = narrow("--payload", options.payload, load.payload, kResultBytesDefault);
  load.work = options.work.value_or(Duration());
  load.lease = options.lease.value_or(load.crashes > 0 ? Duration(200ms) : Duration(30s));
  load.rate = static_cast<double>(options.rate.value_or(0));
  load.seed = options.seed.value_or(1);
  load.operations = narrow("--operations", options.operations,
                           options.quick ? kQuickOperations : kUsualOperations, kOperationsMax);
  if (!options.clients.empty()) session.clients = parse_clients(options.clients);
  session.rounds = narrow("--rounds", options.rounds, kRoundsUsual, 100);
  session.limits.error_share = parse_share("--max-errors", options.max_errors);
  session.limits.wait = options.max_wait.value_or(session.limits.wait);
  session.round_time = kRoundTimeMax;
  const Micros budget = options.time.value_or(options.quick ? kQuickTime : kUsualTime);
  if (budget > kTimeMax) throw Failure::usage("--time: at most 24h");
  session = bench::fit_into(session, subjects, budget);
  if (load.rate > 0) {
    // The plan must not end before the round does.
    const double due = std::ceil(load.rate * static_cast<double>(session.round_time.count()) / 1e6);
    session.workload.operations = static_cast<std::uint32_t>(std::min<double>(due, kOperationsMax));
  }
  must(bench::check_workload(session.workload));
  return session;
}

std::vector<bench::Subject> bench_subjects(const std::vector<std::string>& named) {
  std::vector<bench::Subject> subjects;
  for (const std::string& text : named) subjects.push_back(subject_named(text));
  if (named.empty()) {
    for (const Backend& backend : backends()) subjects.push_back(subject_named(backend.name));
  }
  std::set<std::string> names;
  for (const bench::Subject& subject : subjects) {
    if (!names.insert(subject.name).second)
      throw Failure::usage("--stores: '" + subject.name + "' is named twice");
  }
  return subjects;
}

}  // namespace idem::cli
