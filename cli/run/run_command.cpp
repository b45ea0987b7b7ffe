// idem run: a command that runs at most once per key and lease.
#include <fmt/core.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>

#include <algorithm>
#include <array>

#include "child.hpp"
#include "commands.hpp"
#include "envelope.hpp"
#include "failure.hpp"
#include "idem/lease_margin.hpp"
#include "options.hpp"
#include "run_store.hpp"

namespace idem::cli {

namespace {

struct Options {
  KeyOptions key;
  std::string request_file;
  std::optional<Duration> lease;
  std::optional<Duration> ttl;
  std::optional<Duration> wait;
  std::optional<std::uint64_t> output_max;
  bool retry_failed = false;
};

// While waiting for another run, signals are looked at this often.
constexpr Micros kWaitSlice = std::chrono::seconds(1);

// A result that the store does not take is offered again for so long: without it the command would
// be run a second time.
constexpr Micros kOfferFor = std::chrono::minutes(1);
constexpr Micros kOfferEvery = std::chrono::seconds(1);

// Unambiguous: every word is preceded by its length.
Fingerprint fingerprint_of(const Options& options, const std::vector<std::string>& command) {
  if (!options.request_file.empty()) return Fingerprint::of_bytes(read_file(options.request_file));
  std::string request;
  for (const std::string& word : command) request += fmt::format("{}:{},", word.size(), word);
  return Fingerprint::of_bytes(request);
}

std::uint64_t output_max(const Options& options) {
  return options.output_max.value_or(kResultBytesDefault);
}

Policy policy_of(const Options& options) {
  Policy policy;
  policy.lease = options.lease.value_or(std::chrono::minutes(10));
  policy.stuck_after = std::max(policy.stuck_after, policy.lease);
  policy.result_ttl = options.ttl.value_or(std::chrono::hours(24));
  policy.failed_ttl = policy.result_ttl;
  policy.on_duplicate = OnDuplicate::wait;
  policy.wait = Micros(0);
  // No limit that a store can keep is near the largest number.
  policy.max_result_bytes =
      std::min(output_max(options), kResultBytesDefault << 20) + kEnvelopeLineBytesMax;
  must(check_policy(policy), "--lease, --ttl");
  return policy;
}

ExitCode status_code(int status) { return static_cast<ExitCode>(status); }

ExitCode interruption_code(int signal) { return status_code(128 + signal); }

constexpr const char* kLostText =
    "was lost: the lease was over or taken, another run may have begun; this one does not count";

class Run {
 public:
  Run(const Options& options, Context& context)
      : options_(options), context_(context), policy_(policy_of(options)) {
    request_ = {options.key.value(), fingerprint_of(options, context.command_line)};
  }

  ExitCode operator()();

 private:
  Verdict act(Attempt& attempt);
  ExitCode offer_again(IdempotencyService& service, Error error, const std::string& from);
  ExitCode not_started();
  ExitCode tell_replay(const Replay& replay);
  ExitCode tell_outcome(const Json& answer, ExitCode code, std::string_view text) const;
  void pass_on(std::string_view bytes);
  void print_run(std::string_view outcome, int status, const RunResult& run) const;
  ExitCode tell_own(std::string_view outcome, int status) const;
  void check_output(int status) const;

  // One per outcome of execute.
  friend struct TellOutcome;

  const Options& options_;
  Context& context_;
  Policy policy_;
  Request request_;
  Signals signals_;  // before the service, whose threads inherit the mask
  ChildEnd end_;
  RunResult run_;  // of the command that ended
  PassOn output_{STDOUT_FILENO};
  Token token_;
  std::string envelope_;  // empty: the command did not end with a result
};

Verdict Run::act(Attempt& attempt) {
  if (signals_.interruption() != 0) return NothingDone{};
  token_.fence = attempt.fence();
  OutputKeeper keeper(output_max(options_));
  // SIGKILL comes while nobody else may run yet.
  const Stopping stop{attempt.stop_token(), lease_margin(policy_.lease.micros()) * 3 / 4};
  end_ = run_child(
      context_.command_line, signals_, stop,
      {[&](std::string_view piece) { keeper.add(piece); }, context_.json ? nullptr : &output_});
  run_ = keeper.end(end_.status);
  if (!end_.started) return NothingDone{};
  if (end_.stopped) return Retryable{"the lease was lost", {}};
  if (end_.interruption != 0 && end_.status != 0)
    return Retryable{fmt::format("interrupted by SIG{}", sigabbrev_np(end_.interruption)), {}};
  if (end_.status != 0 && options_.retry_failed)
    return Retryable{fmt::format("exit status {}", end_.status), {}};
  envelope_ = to_envelope(run_);
  return envelope_;
}

// The command ran, but its result was not stored.
ExitCode Run::offer_again(IdempotencyService& service, Error error, const std::string& from) {
  const auto may_pass = [](errc code) {
    return code == errc::unknown || code == errc::unavailable || code == errc::busy ||
           code == errc::capacity || code == errc::read_only;
  };
  Lease lease = Lease::adopt(request_, token_);
  const Time give_up = service.clock().now() + kOfferFor;
  if (!envelope_.empty() && may_pass(error.code)) {
    tell_user(
        fmt::format("idem: the command ran (exit status {}), but that cannot be recorded ({}); "
                    "it is offered again for a minute\n",
                    end_.status, error.message));
  }
  const auto interrupted = [&] {
    int signal = 0;
    while ((signal = signals_.take()) == SIGCHLD) {
    }
    return signal != 0;
  };
  while (!envelope_.empty() && may_pass(error.code) && service.clock().now() < give_up &&
         !interrupted()) {
    service.clock().pause(kOfferEvery);
    const auto outcome = service.complete(lease, envelope_);
    if (!outcome) {
      error = outcome.error();
    } else if (std::holds_alternative<Completed>(*outcome)) {
      return tell_own("executed", end_.status);
    } else {
      return tell_outcome(to_json(*outcome), exit_code(*outcome), kLostText);
    }
  }
  throw Failure(fail(error.code, fmt::format("the command ran (exit status {}), but that could "
                                             "not be recorded: {}",
                                             end_.status, error.message)))
      .from(from)
      .advise(
          "mend the store: once the lease is over, the next run with this key runs the command "
          "again");
}

ExitCode Run::not_started() {
  if (end_.error.empty())
    throw Failure(interruption_code(signals_.interruption()), "interrupted",
                  "interrupted before the command began");
  const std::string& name = context_.command_line.front();
  throw Failure(status_code(end_.missing ? 127 : 126), end_.missing ? "not_found" : "not_started",
                fmt::format("cannot run '{}': {}", name, end_.error))
      .advise("nothing was done by this attempt: the next run with the key starts it again");
}

// Whoever reads our standard output must not take a part of it for the whole.
void Run::check_output(int status) const {
  const std::string failure = output_.failure();
  if (failure.empty()) return;
  throw Failure(ExitCode::unreachable, "unavailable",
                fmt::format("the command ran (exit status {}), but its output could not be written "
                            "to standard output: {}",
                            status, failure))
      .advise("make room, then repeat: what is kept is replayed, and not run again");
}

void Run::print_run(std::string_view outcome, int status, const RunResult& run) const {
  Json answer{{"outcome", outcome}, {"key", options_.key.key}, {"exit_status", status}};
  if (run.kept) put_bytes(answer, "stdout", run.output);
  if (!run.kept) answer["stdout_bytes"] = run.size;
  if (!run.kept) answer["stdout_sha256"] = run.digest.hex();
  print_document(answer);
}

ExitCode Run::tell_own(std::string_view outcome, int status) const {
  check_output(status);
  if (context_.json) {
    print_run(outcome, status, run_);
  }
  return status_code(status);
}

void Run::pass_on(std::string_view bytes) {
  output_.add(bytes);
  while (output_.pending()) {
    std::array<pollfd, 2> waits{{{signals_.descriptor(), POLLIN, 0}, output_.waits()}};
    poll(waits.data(), waits.size(), -1);
    if (const int signal = signals_.interruption(); signal != 0)
      throw Failure(interruption_code(signal), "interrupted", "interrupted while replaying");
    if (waits[1].revents != 0) output_.write_some();
  }
}

ExitCode Run::tell_replay(const Replay& replay) {
  const RunResult first = must(from_envelope(replay.result), "--key " + options_.key.key);
  if (context_.json) {
    print_run("replay", first.status, first);
  } else if (first.kept) {
    pass_on(first.output);
    check_output(first.status);
  } else {
    tell_user(
        fmt::format("idem: '{}' ran before and ended with exit status {}; its output of {} bytes "
                    "(sha256 {}) was too large to keep\n",
                    options_.key.key, first.status, first.size, first.digest.hex()));
  }
  return first.kept ? status_code(first.status) : ExitCode::replay;
}

ExitCode Run::tell_outcome(const Json& answer, ExitCode code, std::string_view text) const {
  if (context_.json) {
    print_document(answer);
  } else {
    tell_user(fmt::format("idem: '{}' {}\n", options_.key.key, text));
  }
  return code;
}

struct TellOutcome {
  Run& run;

  ExitCode operator()(const Executed&) const { return run.tell_own("executed", run.end_.status); }
  ExitCode operator()(const Replay& replay) const { return run.tell_replay(replay); }
  ExitCode operator()(const ActionFailed& failed) const {
    if (!run.end_.started) return run.not_started();
    if (run.end_.interruption == 0) return run.tell_own("failed_recorded", run.end_.status);
    if (!run.context_.json)
      tell_user(fmt::format("idem: {}; the next run of '{}' starts again\n",
                            printable(failed.reason), run.options_.key.key));
    return run.tell_own("interrupted", static_cast<int>(interruption_code(run.end_.interruption)));
  }
  ExitCode operator()(const Released&) const { return run.not_started(); }
  ExitCode operator()(const Lost& lost) const {
    return run.tell_outcome(to_json(CompleteOutcome(lost)), ExitCode::lost, kLostText);
  }
  ExitCode operator()(const InProgress& other) const {
    return claim_answer(other, fmt::format("is in progress (attempt {}); its lease ends in {}",
                                           other.attempt, human(other.retry_after)));
  }
  ExitCode operator()(const Mismatch& other) const {
    return claim_answer(other, run.options_.request_file.empty()
                                   ? "was used before for another command line"
                                   : "was used before for another request than is in " +
                                         printable(run.options_.request_file));
  }
  ExitCode operator()(const Backoff& backoff) const {
    return claim_answer(backoff, fmt::format("failed; next try in {}", human(backoff.retry_after)));
  }
  ExitCode operator()(const Failed& failed) const {
    return claim_answer(failed, "failed before: " + printable(failed.reason));
  }
  ExitCode operator()(const Exhausted& exhausted) const {
    return claim_answer(exhausted, fmt::format("used up its {} attempts", exhausted.attempts));
  }
  ExitCode operator()(const InDoubt& doubt) const {
    return claim_answer(doubt, "fell silent and is in doubt: a person must decide");
  }
  ExitCode operator()(const AlreadyDone& done) const { return claim_answer(done, "is done"); }

 private:
  [[nodiscard]] ExitCode claim_answer(ClaimOutcome outcome, std::string_view text) const {
    return run.tell_outcome(to_json(outcome), exit_code(outcome), text);
  }
};

ExitCode Run::operator()() {
  std::string from;
  const StorePtr store = open_run_store(context_, from);
  ServiceOptions service_options;
  service_options.policy = policy_;
  IdempotencyService service(store, service_options);
  const std::uint64_t store_max = store->capabilities().result_bytes_max;
  if (output_max(options_) > store_max - kEnvelopeLineBytesMax) {
    throw Failure::usage(fmt::format("--max-output {}: this store keeps at most {} bytes",
                                     output_max(options_), store_max - kEnvelopeLineBytesMax));
  }
  const Time deadline = service.clock().now() + options_.wait.value_or(Micros(0)).micros();
  while (true) {
    CallOptions call;
    token_.owner = Owner::random();
    call.owner = token_.owner;
    const Micros left = std::max(Micros(0), deadline - service.clock().now());
    call.policy.wait = std::min(left, kWaitSlice);
    auto outcome = service.execute(
        request_, [this](Attempt& attempt) { return act(attempt); }, call);
    if (!outcome) {
      const Error& error = outcome.error();
      if (!end_.started) throw Failure(error).from(from);
      return offer_again(service, error, from);
    }
    if (std::holds_alternative<InProgress>(*outcome)) {
      if (const int signal = signals_.interruption(); signal != 0)
        throw Failure(interruption_code(signal), "interrupted", "interrupted while waiting");
      if (left > Micros(0)) continue;
    }
    return std::visit(TellOutcome{*this}, *outcome);
  }
}

ExitCode run(const Options& options, Context& context) {
  if (context.command_line.empty())
    throw Failure::usage("no command: it stands after --")
        .advise("idem run --key KEY -- COMMAND ARGUMENT...");
  return Run(options, context)();
}

}  // namespace

void add_run(CLI::App& root, Context& context) {
  auto options = std::make_shared<Options>();
  CLI::App* leaf =
      add_leaf(root, context, "run",
               "Run a command once per key: later runs get its output and exit status\n"
               "Usage form: idem run --key KEY [OPTIONS] -- COMMAND ARGUMENT...",
               {"idem run --key nightly-report -- sh -c 'date +%s%N'",
                "idem run --key \"backup-$(date +%F)\" --lease 5m --wait 30s -- echo done"},
               "$IDEM_STORE, else $XDG_STATE_HOME/idem/run.db");
  add_text(leaf, "--key", options->key.key, "names the work: same key, same run")->required();
  add_scope(leaf, options->key);
  leaf->add_option("--request", options->request_file,
                   "what makes two runs the same is this file, not the command line")
      ->type_name("FILE")
      ->check(not_empty());
  add_duration(leaf, "--lease", options->lease,
               "a run that was killed is taken over after this; a live one renews", "10m");
  add_duration(leaf, "--ttl", options->ttl, "how long the result is replayed", "24h");
  add_duration(leaf, "--wait", options->wait, "wait for a run that is under way", "not at all");
  add_count(leaf, "--max-output", options->output_max,
            "bytes of output to keep; a longer one is not replayed, nor run again", "1MiB");
  leaf->add_flag("--retry-failed", options->retry_failed,
                 "a non-zero exit status is not kept: the next run tries again");
  on_run(leaf, context, options, run);
}

}  // namespace idem::cli
