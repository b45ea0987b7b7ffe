// idem key force-release: a person decides that an attempt is over. The family's root, too.
#include <fmt/core.h>
#include <unistd.h>

#include <cstdio>
#include <iostream>

#include "commands.hpp"
#include "failure.hpp"
#include "options.hpp"

namespace idem::cli {

namespace {

struct Options {
  KeyOptions key;
  std::optional<std::uint64_t> fence;
  bool force = false;
  bool yes = false;
  bool dry_run = false;
};

Failure refuse(std::string why) { return {ExitCode::refused, "refused", std::move(why)}; }

void confirm(const Options& options) {
  if (options.yes) return;
  if (isatty(STDIN_FILENO) == 0)
    throw refuse("no terminal to ask at: confirm with --yes").advise("add --dry-run to see first");
  tell_user(
      fmt::format("Release '{}'? Its owner will be refused from then on. [y/N] ", options.key.key));
  std::string answer;
  std::getline(std::cin, answer);
  if (answer != "y" && answer != "Y" && answer != "yes") throw refuse("not confirmed");
}

ExitCode force_release(const Options& options, Context& context) {
  const StoreChoice choice = chosen_store_or_runs(context);
  IdempotencyService service(open_existing_store(choice));
  const auto found = must(service.get(options.key.value()), choice.from);
  if (!found) {
    print_answer(context, Json{{"outcome", "absent"}}, options.key.key);
    return ExitCode::not_found;
  }
  const Record& record = found->record;
  const std::uint64_t fence = options.fence.value_or(record.fence);
  if (record.status != Status::processing)
    throw refuse(fmt::format("'{}' is not processing, but {}: it is never forgotten by force",
                             options.key.key, to_string(record.status)));
  const Micros left = record.lease_until - found->now;
  if (left > Micros(0) && !options.force)
    throw refuse(fmt::format("the lease of '{}' is live for another {}: its owner may be working",
                             options.key.key, human(left)))
        .advise("wait until it is over: the next claim takes it over")
        .advise("--force, if you know that the owner is dead");
  Json answer{{"outcome", options.dry_run ? "would_release" : "released"}, {"fence", fence}};
  if (!options.dry_run) {
    confirm(options);
    must(service.force_release(options.key.value(), fence), choice.from);
  }
  print_answer(context, answer, options.key.key);
  return ExitCode::done;
}

}  // namespace

void add_key_force_release(CLI::App& family, Context& context) {
  auto options = std::make_shared<Options>();
  CLI::App* leaf =
      add_leaf(family, context, "force-release", "Remove a processing record whose owner is gone",
               {"idem key force-release pay-42 --store sqlite:orders.db --dry-run",
                "idem key claim pay-5 --store sqlite:orders.db && "
                "idem key force-release pay-5 --store sqlite:orders.db --force --yes"},
               kNamedStoreOrRuns);
  add_key(leaf, options->key);
  add_count(leaf, "--fence", options->fence, "only if the record has this fence", "as found");
  leaf->add_flag("--force", options->force, "also while the lease is live");
  leaf->add_flag("--yes", options->yes, "do not ask");
  leaf->add_flag("--dry-run", options->dry_run, "say what would be done, change nothing");
  on_run(leaf, context, options, force_release);
}

void add_key_commands(CLI::App& root, Context& context) {
  CLI::App* family = root.add_subcommand("key", "Claim, end and look at single keys");
  family->set_help_flag("-h,--help", "this text");
  family->require_subcommand(1);
  family->footer("Examples:\n  idem key get pay-42 --store sqlite:orders.db\n");
  add_key_claim(*family, context);
  add_key_verbs(*family, context);
  add_key_views(*family, context);
  add_key_force_release(*family, context);
  add_key_resolve(*family, context);
}

}  // namespace idem::cli
