// idem bench ab: two builds of idem measured in turns, so that the machine's moods hit both alike.
#include <fmt/core.h>
#include <sys/mman.h>

#include <algorithm>
#include <cstring>
#include <stop_token>
#include <string_view>

#include "bench/bench_commands.hpp"
#include "bench/bench_options.hpp"
#include "bench/bench_output.hpp"
#include "bench/bench_progress.hpp"
#include "bench/comparison.hpp"
#include "load/stopwatch.hpp"
#include "load/units.hpp"
#include "run/child.hpp"

namespace idem::cli {

namespace {

constexpr std::uint32_t kPairsUsual = 12;
constexpr std::uint32_t kPairsMax = 100;
// In each turn; their median is the turn's figure. One more warms up.
constexpr std::uint32_t kRoundsPerTurn = 3;
// What a measurement prints has some KiB; a program that prints more is something else.
constexpr std::size_t kOutputMax = std::size_t{16} << 20;
constexpr Micros kTimeUsual = std::chrono::minutes(1);
constexpr Micros kTurnMin = std::chrono::milliseconds(200);

struct AbOptions {
  std::string before;
  std::string after;
  std::vector<std::string> load;
  std::optional<std::uint64_t> pairs;
  std::optional<Duration> time;
  std::string fail_on;
};

// Standard error of a turn: shown only if the turn fails.
class Notes {
 public:
  Notes() : descriptor_(memfd_create("idem-bench-ab", MFD_CLOEXEC)) {}
  Notes(const Notes&) = delete;
  Notes& operator=(const Notes&) = delete;
  ~Notes() { ::close(descriptor_); }

  [[nodiscard]] int descriptor() const { return descriptor_; }
  [[nodiscard]] std::string text() const {
    std::string text(4096, '\0');
    const ssize_t got = pread(descriptor_, text.data(), text.size(), 0);
    text.resize(got > 0 ? static_cast<std::size_t>(got) : 0);
    return text;
  }

 private:
  int descriptor_;
};

// What every turn is told by this command, and must not be told twice.
void check_load(const std::vector<std::string>& load) {
  for (const char* ours : {"--time", "--rounds", "--json", "--out", "--quick"}) {
    const bool told = std::any_of(load.begin(), load.end(), [&](const std::string& word) {
      return word == ours || word.starts_with(std::string(ours) + "=");
    });
    if (told)
      throw Failure::usage(fmt::format("{} cannot stand after --: each turn is told its own", ours))
          .advise("idem bench ab OLD NEW --time 2m --pairs 20 -- --stores sqlite");
  }
}

class Ab {
 public:
  Ab(const AbOptions& options, std::uint32_t pairs, Micros time)
      : options_(options),
        pairs_(pairs),
        turn_time_(std::max(kTurnMin, time / (std::int64_t{2} * pairs))) {}

  // The first of a pair is the one and the other build by turns (A B, B A, A B ...): what a machine
  // does slowly, as warming up, then favours neither.
  void measure() {
    const bench::Nanos started = bench::stopwatch();
    BenchProgress progress;
    for (std::uint32_t turn = 0; turn < 2 * pairs_; ++turn) {
      const bool after = turn % 2 == (turn / 2) % 2;
      const std::string& program = after ? options_.after : options_.before;
      progress.show(turn, 2 * pairs_, program, left(turn, started));
      Json document = run_turn(program);
      if (interruption_ != 0) break;
      (after ? after_ : before_).push_back(std::move(document));
    }
    const std::size_t whole = std::min(before_.size(), after_.size());
    before_.resize(whole);
    after_.resize(whole);
  }

  [[nodiscard]] const std::vector<Json>& before() const { return before_; }
  [[nodiscard]] const std::vector<Json>& after() const { return after_; }
  [[nodiscard]] int interruption() const { return interruption_; }
  [[nodiscard]] Micros planned() const { return turn_time_ * (std::int64_t{2} * pairs_); }

 private:
  [[nodiscard]] Micros left(std::uint32_t turn, bench::Nanos started) const {
    if (turn == 0) return planned();
    return Micros((bench::stopwatch() - started) / turn * (2 * pairs_ - turn) / 1000);
  }

  Json run_turn(const std::string& program) {
    std::vector<std::string> command{program,    "bench",
                                     "run",      "--json",
                                     "--rounds", std::to_string(kRoundsPerTurn),
                                     "--time",   fmt::format("{}us", turn_time_.count())};
    command.insert(command.end(), options_.load.begin(), options_.load.end());
    const Notes notes;
    std::string printed;
    std::stop_source too_much;
    const auto collect = [&](std::string_view piece) {
      if (printed.size() > kOutputMax) {
        too_much.request_stop();
      } else {
        printed += piece;
      }
    };
    const ChildEnd end = run_child(command, signals_, {too_much.get_token()},
                                   {collect, nullptr, notes.descriptor()});
    if (!end.started) {
      throw Failure::usage(fmt::format("cannot run '{}': {}", program, end.error))
          .advise("a program of this directory is written like ./idem");
    }
    interruption_ = end.interruption;
    if (interruption_ != 0) return {};
    Json document = Json::parse(printed, nullptr, false);
    // 1: a row is void, which the comparison says of that row.
    const bool measured = !document.is_discarded() && document.contains("rows");
    if (!measured || (end.status != 0 && end.status != 1))
      throw failed(program, end, document, notes);
    return document;
  }

  // In the program's own words, if it has any.
  static Failure failed(const std::string& program, const ChildEnd& end, const Json& answer,
                        const Notes& notes) {
    std::string words = answer.is_object() ? answer.value("message", "") : "";
    if (words.empty()) words = notes.text();
    if (words.empty()) words = "it printed no measurement";
    const auto store = static_cast<int>(ExitCode::unreachable);
    return {end.status == store ? ExitCode::unreachable : ExitCode::usage, "not_measured",
            fmt::format("'{} bench run' {}: {}", program, how(end), words)};
  }

  static std::string how(const ChildEnd& end) {
    if (end.stopped) return "was ended, as it prints without end";
    if (end.status > 128) return fmt::format("was killed by SIG{}", sigabbrev_np(end.status - 128));
    return fmt::format("ended with exit status {}", end.status);
  }

  const AbOptions& options_;
  const std::uint32_t pairs_;
  const Micros turn_time_;
  Signals signals_;
  std::vector<Json> before_;
  std::vector<Json> after_;
  int interruption_ = 0;
};

ExitCode ab(const AbOptions& options, Context& context) {
  check_load(options.load);
  const double limit = parse_fail_on(options.fail_on);
  const std::uint32_t pairs = narrow("--pairs", options.pairs, kPairsUsual, kPairsMax);
  Ab turns(options, pairs, options.time.value_or(kTimeUsual));
  tell(fmt::format("plan     {} pairs of turns, {} and {}, about {} (Ctrl-C keeps what is done)",
                   pairs, options.before, options.after,
                   bench::duration_text(turns.planned().count() * 1000)));
  turns.measure();
  const ExitCode interrupted = static_cast<ExitCode>(128 + turns.interruption());
  if (turns.before().empty()) return interrupted;
  const auto rows = must(bench::compare_pairs(turns.before(), turns.after()),
                         options.before + " and " + options.after);
  print_comparison(context, rows, "pairs",
                   Json{{"before", options.before},
                        {"after", options.after},
                        {"pairs", turns.before().size()},
                        {"load", options.load},
                        {"machine", turns.before().front().value("machine", Json(nullptr))}});
  return turns.interruption() != 0 ? interrupted : exit_code(rows, limit);
}

}  // namespace

void add_bench_ab(CLI::App& family, Context& context) {
  auto options = std::make_shared<AbOptions>();
  CLI::App* leaf = add_leaf(
      family, context, "ab",
      "Compare two builds of idem, measured in turns; 8 pairs at least for a verdict\n"
      "Usage form: idem bench ab OLD NEW [OPTIONS] -- [OPTION OF bench run]...",
      {"idem bench ab old/idem new/idem -- --stores sqlite",
       "idem bench ab old/idem new/idem --fail-on regression:50% -- --stores memory --clients 1"},
      kNoStore);
  leaf->add_option("OLD", options->before, "the earlier build's program")
      ->type_name("")
      ->required();
  leaf->add_option("NEW", options->after, "the later build's program")->type_name("")->required();
  leaf->add_option("LOAD", options->load, "after --: what `idem bench run` takes, for both alike")
      ->type_name("");
  add_positive(leaf, "--pairs", options->pairs, "of turns, one of each build", "12");
  add_duration(leaf, "--time", options->time, "of the whole, about", "1m");
  add_fail_on(leaf, options->fail_on);
  on_run(leaf, context, options, ab);
}

}  // namespace idem::cli
