// idem store sweep, stats, schema: a store as a whole.
#include <fmt/core.h>

#include <algorithm>
#include <cstdio>

#include "commands.hpp"
#include "idem/state_machine.hpp"
#include "options.hpp"

namespace idem::cli {

namespace {

struct SweepOptions {
  std::optional<std::uint64_t> limit;
  std::optional<Duration> stuck_after;
  bool once = false;
  bool dry_run = false;
};
struct StatsOptions {
  std::optional<Duration> watch;
  std::optional<std::uint64_t> times;
};
struct NoOptions {};

constexpr std::size_t kSweepStep = 500;

ServiceOptions service_options(const SweepOptions& options) {
  ServiceOptions service;
  if (options.stuck_after) {
    service.policy.stuck_after = *options.stuck_after;
    service.policy.lease = std::min(service.policy.lease, *options.stuck_after);
  }
  return service;
}

std::uint64_t count_stuck(IdempotencyService& service, const std::string& from) {
  ListQuery query;
  query.status = Status::processing;
  query.lapsed_for = service.policy("").stuck_after;
  std::uint64_t stuck = 0;
  do {
    const Page page = must(service.list(query), from);
    for (const Listed& item : page.items) stuck += claimed_under_hold(item.record) ? 0 : 1;
    query.cursor = page.cursor;
  } while (!query.cursor.empty());
  return stuck;
}

ExitCode sweep(const SweepOptions& options, Context& context) {
  const StoreChoice choice = chosen_store_or_runs(context);
  IdempotencyService service(open_existing_store(choice), service_options(options));
  Json answer{{"outcome", options.dry_run ? "would_sweep" : "swept"}};
  Swept total;
  if (options.dry_run) {
    total = {count_stuck(service, choice.from), must(service.store().stats(), choice.from).expired};
  } else {
    const auto limit = static_cast<std::size_t>(options.limit.value_or(kSweepStep));
    while (true) {
      const Swept step = must(service.sweep(limit), choice.from);
      total.abandoned += step.abandoned;
      total.expired += step.expired;
      if (options.once || (step.abandoned == 0 && step.expired == 0)) break;
    }
  }
  answer["abandoned"] = total.abandoned;
  answer["expired"] = total.expired;
  print_answer(context, answer, "");
  return ExitCode::done;
}

std::string_view to_word(Durability durability) {
  switch (durability) {
    case Durability::none:
      return "none";
    case Durability::process:
      return "process";
    case Durability::power:
      return "power";
  }
  return "?";
}

Json counted(IdempotencyStore& store, const std::string& from) {
  const StoreStats counted = must(store.stats(), from);
  const Capabilities& can = store.capabilities();
  Json answer{{"outcome", "stats"}, {"backend", can.backend}};
  answer["records"] = counted.records();
  answer["processing"] = counted.processing;
  answer["success"] = counted.success;
  answer["failed"] = counted.failed;
  answer["expired"] = counted.expired;
  answer["bytes"] = counted.bytes;
  answer["durability"] = to_word(can.durability);
  answer["multi_process"] = can.multi_process;
  answer["result_bytes_max"] = can.result_bytes_max;
  return answer;
}

ExitCode stats(const StatsOptions& options, Context& context) {
  const StoreChoice choice = chosen_store_or_runs(context);
  const StorePtr store = open_existing_store(choice);
  for (std::uint64_t shown = 1;; ++shown) {
    print_answer(context, counted(*store, choice.from), "");
    std::fflush(stdout);  // whoever reads it through a pipe is watching, too
    if (!options.watch || (options.times && shown >= *options.times)) return ExitCode::done;
    system_clock().pause(*options.watch);
    if (!context.json) print_text("\n");
  }
}

ExitCode schema(const NoOptions&, Context& context) {
  const StoreChoice choice = chosen_store_or_runs(context);
  const StoreUrl url = must(StoreUrl::parse(choice.url), choice.from);
  const Backend& backend = *must(backend_in_registry(url, backends()), choice.from);
  const std::string text = backend.schema ? must(backend.schema(url), choice.from) : "";
  if (context.json) {
    print_document(Json{{"backend", backend.name}, {"text", text}});
  } else {
    print_text(text.empty() ? backend.name + ": nothing to create\n" : text);
  }
  return ExitCode::done;
}

}  // namespace

void add_store_commands(CLI::App& root, Context& context) {
  CLI::App* family = root.add_subcommand("store", "Clean, count, examine and move a whole store");
  family->set_help_flag("-h,--help", "this text");
  family->require_subcommand(1);
  family->footer("Examples:\n  idem store stats --store sqlite:orders.db\n");

  auto options = std::make_shared<SweepOptions>();
  CLI::App* leaf = add_leaf(*family, context, "sweep",
                            "Give up on attempts that never reported; free what is past its time",
                            {"idem store sweep --store sqlite:orders.db --dry-run",
                             "idem store sweep --store sqlite:orders.db"},
                            kNamedStoreOrRuns);
  add_positive(leaf, "--limit", options->limit, "records to a step", "500");
  add_duration(leaf, "--stuck-after", options->stuck_after,
               "silence after which an attempt with a lease that is over counts as abandoned",
               "10m");
  leaf->add_flag("--once", options->once, "one step, not until nothing is left");
  leaf->add_flag("--dry-run", options->dry_run, "count what would be done, change nothing");
  on_run(leaf, context, options, sweep);

  auto stats_options = std::make_shared<StatsOptions>();
  leaf = add_leaf(*family, context, "stats", "Count the records and their bytes",
                  {"idem store stats --store sqlite:orders.db",
                   "idem store stats --store sqlite:orders.db --watch 2s"},
                  kNamedStoreOrRuns);
  add_duration(leaf, "--watch", stats_options->watch, "count again, this often, until interrupted",
               "");
  add_count(leaf, "--times", stats_options->times, "with --watch: stop after so many", "");
  on_run(leaf, context, stats_options, stats);
  leaf = add_leaf(*family, context, "schema", "Show what the store makes in its database",
                  {"idem store schema --store sqlite:orders.db"}, kNamedStoreOrRuns);
  on_run(leaf, context, std::make_shared<NoOptions>(), schema);
  add_store_doctor(*family, context);
  add_store_transfer(*family, context);
}

}  // namespace idem::cli
