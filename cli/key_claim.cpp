// idem key claim.
#include <fmt/core.h>

#include "commands.hpp"
#include "key_request.hpp"
#include "options.hpp"

namespace idem::cli {

namespace {

struct Options {
  KeyOptions key;
  RequestOptions request;
  PolicyOptions policy;
  std::string owner;
  std::optional<Duration> wait;
  bool export_token = false;
};

// For eval: sets the token, or leaves the exit status of a claim that was not given.
std::string shell_lines(const ClaimOutcome& outcome) {
  if (const auto* claimed = std::get_if<Claimed>(&outcome))
    return fmt::format("export IDEM_OWNER={} IDEM_FENCE={}\n", claimed->lease.token().owner.hex(),
                       claimed->lease.fence());
  return fmt::format("(exit {})\n", static_cast<int>(exit_code(outcome)));
}

ExitCode claim(const Options& options, Context& context) {
  const StoreChoice choice = chosen_store(context);
  const Request request{options.key.value(), fingerprint_of(options.request)};
  CallOptions call{.policy = patch_of(options.policy), .owner = {}, .timeout = {}};
  if (!options.owner.empty()) call.owner = must(Owner::from_hex(options.owner), "--owner");

  IdempotencyService service(open_lasting_store(choice));
  const ClaimOutcome outcome =
      must(options.wait ? service.claim_or_wait(request, *options.wait, call)
                        : service.claim(request, call),
           choice.from);
  if (options.export_token && !context.json) {
    print_text(shell_lines(outcome));
  } else {
    print_answer(context, to_json(outcome), options.key.key);
  }
  return exit_code(outcome);
}

}  // namespace

void add_key_claim(CLI::App& family, Context& context) {
  auto options = std::make_shared<Options>();
  CLI::App* leaf =
      add_leaf(family, context, "claim", "Start an attempt, or learn what became of the first one",
               {"idem key claim pay-42 --store sqlite:orders.db --request '{\"amount\":100}'",
                "eval \"$(idem key claim pay-43 --store sqlite:orders.db --export)\" && "
                "idem key complete pay-43 --store sqlite:orders.db --result paid"});
  add_key(leaf, options->key);
  add_request(leaf, options->request);
  add_policy(leaf, options->policy);
  add_duration(leaf, "--wait", options->wait, "wait for an attempt that is under way", "0");
  add_text(leaf, "--owner", options->owner, "ask again with the owner token of an earlier try",
           "a new one")
      ->check(not_empty());
  leaf->add_flag("--export", options->export_token,
                 "print shell lines for eval: IDEM_OWNER and IDEM_FENCE");
  on_run(leaf, context, options, claim);
}

}  // namespace idem::cli
