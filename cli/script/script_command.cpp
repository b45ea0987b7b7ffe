// idem script: runs scenario files, one JSON object a line, on any store.
#include <fmt/core.h>
#include <signal.h>

#include <sstream>

#include "commands.hpp"
#include "expect.hpp"
#include "options.hpp"
#include "runner.hpp"
#include "stop_on_signal.hpp"

namespace idem::cli {

namespace {

struct Options {
  std::vector<std::string> files;
  bool real_time = false;
  bool quiet = false;
};

// What became of the files so far.
struct Tally {
  std::uint64_t lines = 0;
  std::uint64_t expectations = 0;
  Json answers = Json::array();      // with --json only
  Json differences = Json::array();  // {"file", "line", "difference"}
};

class File {
 public:
  File(const Options& options, const Context& context, std::string name, Tally& tally)
      : options_(options), context_(context), name_(std::move(name)), tally_(tally) {}

  // False: a signal came, and no further line was run. The store is taken away in any case.
  [[nodiscard]] bool run(const StoreChoice& choice) {
    std::istringstream lines(read_file(name_));  // a signal ends it as usual: nothing is made yet
    const StopOnSignal stop;
    VirtualClock virtual_clock;
    Clock& clock = options_.real_time ? system_clock() : virtual_clock;
    OpenOptions opened;
    opened.clock = &clock;
    const Fixture made = must(open_beside(choice.url, opened), choice.from);
    ScriptRunner runner(made.store, clock, stop.flag());
    std::string text;
    for (int number = 1; !stop.flag() && std::getline(lines, text); ++number) {
      const std::size_t begin = text.find_first_not_of(" \t\r");
      if (begin == std::string::npos || text[begin] == '#') continue;
      try {
        step(runner, text, number);
      } catch (const Failure& failure) {
        throw Failure::usage(fmt::format("{}:{}: {}", name_, number, failure.what()));
      } catch (const Json::exception& error) {
        throw Failure::usage(fmt::format("{}:{}: {}", name_, number, error.what()));
      }
    }
    return !stop.flag();
  }

 private:
  void step(ScriptRunner& runner, std::string_view text, int number) {
    Line line = Line::parse(text);
    const Json* expected = line.member("expect");
    const Json answer = runner.answer(line);
    line.check_all_known();
    ++tally_.lines;
    if (context_.json) {
      tally_.answers.push_back(answer);
    } else if (!options_.quiet) {
      print_text(answer.dump() + "\n");
    }
    if (expected == nullptr) return;
    ++tally_.expectations;
    const auto found = expectations_.difference(*expected, answer);
    if (!found) return;
    tally_.differences.push_back(Json{{"file", name_}, {"line", number}, {"difference", *found}});
    if (!context_.json) fmt::print(stderr, "{}:{}: {}\n", name_, number, *found);
  }

  const Options& options_;
  const Context& context_;
  std::string name_;
  Tally& tally_;
  Expectations expectations_;
};

ExitCode script(const Options& options, Context& context) {
  StoreChoice choice = named_store(context);
  if (choice.url.empty()) choice = {"memory:", "the default store memory:"};
  Tally tally;
  signal(SIGPIPE, SIG_IGN);  // a reader that went away is an error of writing
  for (const std::string& name : options.files) {
    if (!File(options, context, name, tally).run(choice)) return StopOnSignal::exit_code();
  }
  const bool passed = tally.differences.empty();
  if (context.json) {
    print_document(Json{{"outcome", passed ? "passed" : "failed"},
                        {"lines", tally.lines},
                        {"expectations", tally.expectations},
                        {"differences", tally.differences},
                        {"answers", tally.answers}});
  } else {
    fmt::print(stderr, "{} files, {} lines, {} expectations, {} differences\n",
               options.files.size(), tally.lines, tally.expectations, tally.differences.size());
  }
  return passed ? ExitCode::done : ExitCode::check_failed;
}

}  // namespace

void add_script(CLI::App& root, Context& context) {
  auto options = std::make_shared<Options>();
  CLI::App* leaf =
      add_leaf(root, context, "script",
               "Run scenario files: one JSON object a line in, one a line out.\n"
               "Each file gets a store of its own, empty and removed afterwards (default: memory:)",
               {"echo '{\"op\":\"claim\",\"key\":\"k1\",\"expect\":{\"outcome\":\"claimed\"}}' | "
                "idem script --store memory: -"},
               "$IDEM_STORE, else memory:");
  leaf->add_option("FILE", options->files, "scenario files, - for standard input")
      ->type_name("")
      ->required()
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
  leaf->add_flag("--real-time", options->real_time,
                 "the machine's clock: advance waits instead of moving a virtual clock");
  leaf->add_flag("--quiet", options->quiet, "no answers, only differences");
  on_run(leaf, context, options, script);
}

}  // namespace idem::cli
