// idem key claim.
#include <fmt/core.h>

#include <cstdio>

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

// What a person does about a claim that will not be given by waiting; empty: nothing.
std::string advice_on(const ClaimOutcome& outcome, const KeyOptions& key) {
  std::string named = key.key;
  if (!key.biz.empty()) named += " --biz " + key.biz;
  if (!key.tenant.empty()) named += " --tenant " + key.tenant;
  const std::string decide = "find out whether it took effect, then: idem key resolve " + named +
                             " --result RESULT | --failed REASON | --not-done";
  if (std::holds_alternative<Mismatch>(outcome))
    return "another request came with this key first: give this one a key of its own, or look with "
           "idem key get " +
           named;
  if (std::holds_alternative<InDoubt>(outcome)) return decide;
  if (std::holds_alternative<Exhausted>(outcome)) return "no attempt is left: " + decide;
  return {};
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
    // The shell takes standard output; a person would see nothing.
    const std::string told = to_text(to_json(outcome), printable(options.key.key));
    if (exit_code(outcome) != ExitCode::done)
      tell_user("idem: not claimed: " + told.substr(0, told.find('\n')) + "\n");
  } else {
    print_answer(context, to_json(outcome), options.key.key);
  }
  const std::string advice = advice_on(outcome, options.key);
  if (!advice.empty() && !context.json) {
    std::fflush(stdout);
    tell_user("  try:  " + printable(advice) + "\n");
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
