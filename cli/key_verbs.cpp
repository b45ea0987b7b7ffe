// idem key complete, fail, renew, release: what the owner of a claim does with it, perhaps in
// another process than the one that claimed.
#include "commands.hpp"
#include "key_request.hpp"
#include "options.hpp"

namespace idem::cli {

namespace {

struct Options {
  KeyOptions key;
  TokenOptions token;
  BytesOptions bytes;
  std::string kind = "retryable";
  std::optional<Duration> duration;
  bool tombstone = false;
};

// The claim as the options tell it, and the service that holds it.
struct Held {
  StoreChoice choice;
  IdempotencyService service;
  Lease lease;

  Held(const Options& options, const Context& context)
      : choice(chosen_store(context)),
        service(open_existing_store(choice)),
        lease(Lease::adopt({options.key.value(), {}}, token_of(options.token))) {}
};

template <class Outcome>
ExitCode tell(const result<Outcome>& outcome, const Held& held, const Context& context) {
  const Outcome value = must(outcome, held.choice.from);
  print_answer(context, to_json(value), held.lease.request().key.key);
  return exit_code(value);
}

ExitCode complete(const Options& options, Context& context) {
  Held held(options, context);
  CallOptions call;
  call.policy.result_ttl = options.duration;
  if (options.tombstone) call.policy.oversize = Oversize::tombstone;
  return tell(held.service.complete(held.lease, options.bytes.value(), call), held, context);
}

ExitCode fail_it(const Options& options, Context& context) {
  Held held(options, context);
  const FailKind kind = options.kind == "final" ? FailKind::final : FailKind::retryable;
  return tell(held.service.fail(held.lease, kind, options.bytes.value(),
                                options.duration.value_or(Micros(0))),
              held, context);
}

ExitCode renew(const Options& options, Context& context) {
  Held held(options, context);
  CallOptions call;
  call.policy.lease = options.duration;
  return tell(held.service.renew(held.lease, call), held, context);
}

ExitCode release(const Options& options, Context& context) {
  Held held(options, context);
  return tell(held.service.release(held.lease), held, context);
}

// Every example claims first, so that it runs as it stands.
std::string example(const std::string& verb, const std::string& key, const std::string& rest) {
  const std::string where = key + " --store sqlite:orders.db ";
  return "eval \"$(idem key claim " + where + "--export)\" && idem key " + verb + " " + where +
         rest;
}

CLI::App* add_verb(CLI::App& family, Context& context, const std::string& name,
                   const std::string& summary, const std::string& shown,
                   const std::shared_ptr<Options>& options) {
  CLI::App* leaf = add_leaf(family, context, name, summary, {shown});
  add_key(leaf, options->key);
  add_token(leaf, options->token);
  return leaf;
}

}  // namespace

void add_key_verbs(CLI::App& family, Context& context) {
  auto options = std::make_shared<Options>();
  CLI::App* leaf = add_verb(family, context, "complete", "Store the first result",
                            example("complete", "pay-1", "--result '{\"id\":\"P1\"}'"), options);
  add_bytes(leaf, "result", options->bytes, "the result: kept and replayed byte for byte");
  add_duration(leaf, "--ttl", options->duration, "how long it is kept", "24h");
  leaf->add_flag("--tombstone", options->tombstone,
                 "of a result over 1 MiB keep size and digest instead of refusing it");
  on_run(leaf, context, options, complete);

  options = std::make_shared<Options>();
  leaf = add_verb(family, context, "fail", "Say that the attempt failed",
                  example("fail", "pay-2", "--reason '503 upstream' --retry-after 30s"), options);
  leaf->add_option("--kind", options->kind, "retryable or final")
      ->type_name("WORD")
      ->default_str("retryable")
      ->check(CLI::IsMember({"retryable", "final"}));
  add_bytes(leaf, "reason", options->bytes, "why; told to those who ask later");
  add_duration(leaf, "--retry-after", options->duration, "no retry before", "at once");
  on_run(leaf, context, options, fail_it);

  options = std::make_shared<Options>();
  leaf = add_verb(family, context, "renew", "Make the lease last longer, from now on",
                  example("renew", "pay-3", "--lease 5m"), options);
  add_duration(leaf, "--lease", options->duration, "how long, from now on", "30s");
  on_run(leaf, context, options, renew);

  options = std::make_shared<Options>();
  leaf = add_verb(family, context, "release", "Give the claim back: nothing was done yet",
                  example("release", "pay-4", ""), options);
  on_run(leaf, context, options, release);
}

}  // namespace idem::cli
