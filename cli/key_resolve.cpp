// idem key resolve: a person found out how an attempt ended that never reported (in doubt).
#include <fmt/core.h>

#include "commands.hpp"
#include "key_request.hpp"
#include "options.hpp"

namespace idem::cli {

namespace {

struct Options {
  KeyOptions key;
  std::optional<std::uint64_t> fence;
  BytesOptions result;
  bool has_result = false;
  std::string failed;
  bool not_done = false;
};

Resolution resolution_of(const Options& options) {
  const bool result = options.has_result || !options.result.file.empty();
  if (static_cast<int>(result) + static_cast<int>(!options.failed.empty()) +
          static_cast<int>(options.not_done) !=
      1) {
    throw Failure::usage("how did it end? give one of --result, --failed, --not-done");
  }
  if (result) return ResolveSuccess{options.result.value()};
  if (options.not_done) return ResolveFailure{"resolved: it had no effect", FailKind::retryable};
  return ResolveFailure{options.failed, FailKind::final};
}

ExitCode resolve(const Options& options, Context& context) {
  const Resolution resolution = resolution_of(options);
  const StoreChoice choice = chosen_store_or_runs(context);
  IdempotencyService service(open_existing_store(choice));
  const auto found = must(service.get(options.key.value()), choice.from);
  if (!found) {
    print_answer(context, Json{{"outcome", "absent"}}, options.key.key);
    return ExitCode::not_found;
  }
  const Micros left = found->record.lease_until - found->now;
  if (found->record.status == Status::processing && left > Micros(0)) {
    throw Failure(ExitCode::refused, "refused",
                  fmt::format("the lease of '{}' is live for another {}: its owner may be working",
                              options.key.key, human(left)))
        .advise("wait until it is over");
  }
  const std::uint64_t fence = options.fence.value_or(found->record.fence);
  must(service.resolve(options.key.value(), fence, resolution), choice.from);
  print_answer(context, Json{{"outcome", "resolved"}, {"fence", fence}}, options.key.key);
  return ExitCode::done;
}

}  // namespace

void add_key_resolve(CLI::App& family, Context& context) {
  auto options = std::make_shared<Options>();
  CLI::App* leaf =
      add_leaf(family, context, "resolve", "Say how an attempt ended that never reported",
               {"idem key claim pay-6 --lease 1ms --on-lapsed hold --store sqlite:orders.db && "
                "until idem key resolve pay-6 --store sqlite:orders.db --result paid; do :; done"},
               kNamedStoreOrRuns);
  add_key(leaf, options->key);
  add_count(leaf, "--fence", options->fence, "only if the record has this fence", "as found");
  add_bytes(leaf, "result", options->result, "it took effect, with this result");
  leaf->get_option("--result")->each([options](const std::string&) { options->has_result = true; });
  add_text(leaf, "--failed", options->failed, "it failed for good, for this reason")
      ->check(not_empty());
  leaf->add_flag("--not-done", options->not_done,
                 "it had no effect: the next request with the key runs it");
  on_run(leaf, context, options, resolve);
}

}  // namespace idem::cli
