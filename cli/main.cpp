// The `idem` command: parses, calls the library, prints.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <span>
#include <string>
#include <vector>

#include "commands.hpp"
#include "descriptors.hpp"
#include "help.hpp"

namespace idem::cli {

namespace {

constexpr const char* kExamples =
    "Examples:\n"
    "  idem demo\n"
    "  idem run --key nightly-report -- sh -c 'date +%s%N'\n"
    "  idem key claim pay-42 --store sqlite:orders.db\n";

void build(CLI::App& root, Context& context) {
  root.name("idem");
  root.formatter(std::make_shared<HelpFormatter>());
  root.option_defaults()->multi_option_policy(CLI::MultiOptionPolicy::TakeLast);
  root.footer(kExamples);
  add_global_options(root, context, "$IDEM_STORE");
  root.set_version_flag("--version", IDEM_VERSION, "the version");
  root.require_subcommand(1);
  add_run(root, context);
  add_key_commands(root, context);
  add_store_commands(root, context);
  add_script(root, context);
  add_demo(root, context);
  add_config_commands(root, context);
  add_serve(root, context);
  add_bench(root, context);
  add_about_commands(root, context);
}

// For `run`, everything after the first "--" is another program's command line and none of ours.
void take_foreign_arguments(std::vector<std::string>& arguments, Context& context) {
  const auto named = std::find_if(arguments.begin(), arguments.end(),
                                  [](const std::string& word) { return word == "run"; });
  const auto end_of_ours = std::find(arguments.begin(), arguments.end(), "--");
  if (named < end_of_ours && end_of_ours != arguments.end() &&
      std::none_of(arguments.begin(), named,
                   [](const std::string& word) { return !word.starts_with('-'); })) {
    context.command_line.assign(end_of_ours + 1, arguments.end());
    arguments.erase(end_of_ours, arguments.end());
  }
}

int run_command(CLI::App& root, Context& context, std::vector<std::string> arguments, bool json) {
  std::reverse(arguments.begin(), arguments.end());  // as CLI11 takes them
  try {
    root.parse(std::move(arguments));
  } catch (const CLI::CallForVersion&) {
    print_version(json);
    return static_cast<int>(ExitCode::done);
  } catch (const CLI::Success& wanted) {  // --help, a text always
    return root.exit(wanted);
  } catch (const CLI::ParseError& error) {
    throw usage_failure(root, error);
  }
  return static_cast<int>(context.action());
}

int main_of(std::vector<std::string> arguments) {
  Context context;
  CLI::App root{"The same request N times has the effect of one."};
  build(root, context);
  if (arguments.empty()) {
    std::fputs("idem: the same request N times has the effect of one\n\n", stderr);
    std::fputs(kExamples, stderr);
    std::fputs("\nidem --help lists the commands\n", stderr);
    return static_cast<int>(ExitCode::usage);
  }
  take_foreign_arguments(arguments, context);
  // Also for a line that does not parse.
  const bool json = std::find(arguments.begin(), arguments.end(), "--json") != arguments.end();
  try {
    const int exit = run_command(root, context, std::move(arguments), json);
    // A script that believes in an answer it never got would lose, say, the token of a claim.
    if (std::fflush(stdout) == 0 && std::ferror(stdout) == 0) return exit;
    Failure(ExitCode::unreachable, "unavailable",
            "the answer could not be written to standard output")
        .advise("make room, or open it, and ask again: what was done is not done twice")
        .print(false);  // JSON would go the same way
    return static_cast<int>(ExitCode::unreachable);
  } catch (const Failure& failure) {
    failure.print(json);
    return static_cast<int>(failure.exit());
  } catch (const std::exception& error) {
    Failure(fail(errc::internal, error.what())).print(json);
    return static_cast<int>(exit_code(errc::internal));
  }
}

}  // namespace

}  // namespace idem::cli

int main(int argc, char** argv) {
  idem::cli::settle_descriptors();
  const std::span<char*> words(argv, static_cast<std::size_t>(argc));
  return idem::cli::main_of({words.begin() + (argc > 0 ? 1 : 0), words.end()});
}
