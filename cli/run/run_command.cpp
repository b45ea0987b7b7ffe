// idem run: a command that runs at most once per key and lease.
#include <fmt/core.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>

#include "child.hpp"
#include "commands.hpp"
#include "envelope.hpp"
#include "failure.hpp"
#include "idem/lease_margin.hpp"
#include "run_options.hpp"
#include "run_store.hpp"

namespace idem::cli {

namespace {

// While waiting for another run, signals are looked at this often.
constexpr Micros kWaitSlice = std::chrono::seconds(1);

// A result that the store does not take is offered again for so long: without it the command would
// be run a second time.
constexpr Micros kOfferFor = std::chrono::minutes(1);
constexpr std::chrono::milliseconds kOfferEvery = std::chrono::seconds(1);

ExitCode status_code(int status) { return static_cast<ExitCode>(status); }

ExitCode interruption_code(int signal) { return status_code(128 + signal); }

constexpr std::string_view kReplayAdvice =
    "make room, then repeat: what is kept is replayed, and not run again";

constexpr const char* kLostText =
    "was lost: the lease was over or taken, another run may have begun; this one does not count";

constexpr const char* kLateText =
    "was not started: its lease was or may have been over before the command could begin";

// A person who interrupts does not wait long for a reader of messages who does not go on.
constexpr Micros kMessagePatience = std::chrono::milliseconds(500);

// What a person is told while the run goes on; nothing waits for it to be read but the very end,
// when signals act as usual again.
class Messages {
 public:
  ~Messages() { hurried_ ? outlet_.settle(kMessagePatience) : outlet_.finish(); }
  void tell(std::string_view text) { outlet_.add(text); }
  void hurry() { hurried_ = true; }

 private:
  Outlet outlet_{STDERR_FILENO};
  bool hurried_ = false;
};

class Run {
 public:
  Run(const RunOptions& options, Context& context)
      : options_(options), context_(context), policy_(policy_of(options)) {
    request_ = {options.key.value(), fingerprint_of(options, context.command_line)};
  }

  ExitCode operator()();

 private:
  Verdict act(Attempt& attempt);
  ExitCode offer_again(IdempotencyService& service, Error error, const std::string& from);
  [[nodiscard]] bool interrupted_within(std::chrono::milliseconds pause);
  [[noreturn]] void not_recorded(const Error& error, const std::string& from);
  void check_interruption(std::string_view while_what);
  ExitCode not_started();
  ExitCode tell_replay(const Replay& replay);
  ExitCode tell_interrupted(std::string_view reason);
  ExitCode tell_outcome(const Json& answer, ExitCode code, std::string_view text);
  ExitCode tell_lost(const Lost& lost) {
    return tell_outcome(to_json(CompleteOutcome(lost)), ExitCode::lost,
                        end_.late ? kLateText : kLostText);
  }
  void print(const Json& document);
  void pass_on(std::string_view bytes);
  void print_run(std::string_view outcome, int status, const RunResult& run);
  ExitCode tell_own(std::string_view outcome);
  void check_output(int status, std::string_view advice) const;

  // One per outcome of execute.
  friend struct TellOutcome;

  const RunOptions& options_;
  Context& context_;
  Policy policy_;
  Request request_;
  Messages messages_;  // waits for its reader when the signals have been given back
  Signals signals_;    // before the service, whose threads inherit the mask
  ChildEnd end_;
  RunResult run_;  // of the command that ended
  Outlet output_{STDOUT_FILENO};
  Token token_;
  std::string envelope_;  // empty: the command did not end with a result
};

Verdict Run::act(Attempt& attempt) {
  if (signals_.interruption() != 0) return NothingDone{};
  token_.fence = attempt.fence();
  OutputKeeper keeper(output_max(options_));
  const Micros lease = policy_.lease.micros();
  // SIGKILL comes while nobody else may run yet.
  const Stopping stop{attempt.stop_token(), lease_margin(lease) * 3 / 4,
                      ChildLease{lease, [&] { return attempt.safe_until(); }}};
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
    messages_.tell(
        fmt::format("idem: the command ran (exit status {}), but that cannot be recorded ({}); "
                    "it is offered again for a minute\n",
                    end_.status, error.message));
  }
  while (!envelope_.empty() && may_pass(error.code) && service.clock().now() < give_up) {
    const auto outcome = service.complete(lease, envelope_);
    if (outcome && std::holds_alternative<Completed>(*outcome)) return tell_own("executed");
    if (outcome) return tell_outcome(to_json(*outcome), exit_code(*outcome), kLostText);
    error = outcome.error();
    if (interrupted_within(kOfferEvery)) break;
  }
  not_recorded(error, from);
}

bool Run::interrupted_within(std::chrono::milliseconds pause) {
  pollfd signal{signals_.descriptor(), POLLIN, 0};
  poll(&signal, 1, static_cast<int>(pause.count()));
  bool interrupted = false;
  while (const int taken = signals_.take()) interrupted = interrupted || taken != SIGCHLD;
  return interrupted;
}

void Run::not_recorded(const Error& error, const std::string& from) {
  const Error told = fail(error.code, fmt::format("the command ran (exit status {}), but that "
                                                  "could not be recorded: {}",
                                                  end_.status, error.message));
  const int signal = signals_.interruption();
  if (signal != 0) messages_.hurry();
  throw(signal == 0 ? Failure(told)
                    : Failure(interruption_code(signal), "interrupted", told.message))
      .from(from)
      .advise(
          "mend the store: once the lease is over, the next run with this key runs the command "
          "again");
}

void Run::check_interruption(std::string_view while_what) {
  const int signal = signals_.interruption();
  if (signal == 0) return;
  messages_.hurry();
  throw Failure(interruption_code(signal), "interrupted",
                fmt::format("interrupted {}", while_what));
}

ExitCode Run::not_started() {
  if (end_.late) return tell_lost(Lost{});
  if (end_.error.empty()) check_interruption("before the command began");
  const std::string& name = context_.command_line.front();
  throw Failure(status_code(end_.missing ? 127 : 126), end_.missing ? "not_found" : "not_started",
                fmt::format("cannot run '{}': {}", name, end_.error))
      .advise("nothing was done by this attempt: the next run with the key starts it again");
}

// Whoever reads our standard output must not take a part of it for the whole.
void Run::check_output(int status, std::string_view advice) const {
  const std::string failure = output_.failure();
  if (failure.empty()) return;
  throw Failure(ExitCode::unreachable, "unavailable",
                fmt::format("the command ran (exit status {}), but its output could not be written "
                            "to standard output: {}",
                            status, failure))
      .advise(std::string(advice));
}

// Whoever does not read it can be left by a signal.
void Run::print(const Json& document) {
  signals_.give_back();
  print_document(document);
}

void Run::print_run(std::string_view outcome, int status, const RunResult& run) {
  Json answer{{"outcome", outcome}, {"key", options_.key.key}, {"exit_status", status}};
  if (run.kept) put_bytes(answer, "stdout", run.output);
  if (!run.kept) answer["stdout_bytes"] = run.size;
  if (!run.kept) answer["stdout_sha256"] = run.digest.hex();
  print(answer);
}

ExitCode Run::tell_own(std::string_view outcome) {
  check_output(end_.status, outcome == "executed"
                                ? kReplayAdvice
                                : "make room, then repeat: the next run starts again");
  if (context_.json) print_run(outcome, end_.status, run_);
  return status_code(end_.status);
}

// What its reader did not take is of no account: the next run starts again.
ExitCode Run::tell_interrupted(std::string_view reason) {
  messages_.hurry();
  const ExitCode code = interruption_code(end_.interruption);
  if (context_.json) {
    print_run("interrupted", static_cast<int>(code), run_);
  } else {
    messages_.tell(fmt::format("idem: {}; the next run of '{}' starts again\n", printable(reason),
                               options_.key.key));
  }
  return code;
}

void Run::pass_on(std::string_view bytes) {
  output_.add(bytes);
  while (output_.pending()) {
    std::array<pollfd, 2> waits{
        {{signals_.descriptor(), POLLIN, 0}, {output_.progress(), POLLIN, 0}}};
    poll(waits.data(), waits.size(), -1);
    check_interruption("while replaying");
    if (waits[1].revents != 0) output_.hear();
  }
}

ExitCode Run::tell_replay(const Replay& replay) {
  const RunResult first = must(from_envelope(replay.result), "--key " + options_.key.key);
  if (context_.json) {
    print_run("replay", first.status, first);
  } else if (first.kept) {
    pass_on(first.output);
    check_output(first.status, kReplayAdvice);
  } else {
    messages_.tell(
        fmt::format("idem: '{}' ran before and ended with exit status {}; its output of {} bytes "
                    "(sha256 {}) was too large to keep\n",
                    options_.key.key, first.status, first.size, first.digest.hex()));
  }
  return first.kept ? status_code(first.status) : ExitCode::replay;
}

ExitCode Run::tell_outcome(const Json& answer, ExitCode code, std::string_view text) {
  if (context_.json) {
    print(answer);
  } else {
    messages_.tell(fmt::format("idem: '{}' {}\n", options_.key.key, text));
  }
  return code;
}

struct TellOutcome {
  Run& run;

  ExitCode operator()(const Executed&) const { return run.tell_own("executed"); }
  ExitCode operator()(const Replay& replay) const { return run.tell_replay(replay); }
  ExitCode operator()(const ActionFailed& failed) const {
    if (!run.end_.started) return run.not_started();
    if (run.end_.stopped) return run.tell_lost(Lost{});
    if (run.end_.interruption != 0) return run.tell_interrupted(failed.reason);
    return run.tell_own("failed_recorded");
  }
  ExitCode operator()(const Released&) const { return run.not_started(); }
  ExitCode operator()(const Lost& lost) const { return run.tell_lost(lost); }
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
  std::string news;
  const StorePtr store = open_run_store(context_, from, news);
  messages_.tell(news);
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
      if (!end_.started) {
        check_interruption("before the command began");
        throw Failure(error).from(from);
      }
      return offer_again(service, error, from);
    }
    if (std::holds_alternative<InProgress>(*outcome)) {
      check_interruption("while waiting");
      if (left > Micros(0)) continue;
    }
    return std::visit(TellOutcome{*this}, *outcome);
  }
}

ExitCode run(const RunOptions& options, Context& context) {
  if (context.command_line.empty())
    throw Failure::usage("no command: it stands after --")
        .advise("idem run --key KEY -- COMMAND ARGUMENT...");
  return Run(options, context)();
}

}  // namespace

void add_run(CLI::App& root, Context& context) {
  auto options = std::make_shared<RunOptions>();
  CLI::App* leaf =
      add_leaf(root, context, "run",
               "Run a command once per key: later runs get its output and exit status\n"
               "Usage form: idem run --key KEY [OPTIONS] -- COMMAND ARGUMENT...",
               {"idem run --key nightly-report -- sh -c 'date +%s%N'",
                "idem run --key \"backup-$(date +%F)\" --lease 5m --wait 30s -- echo done"},
               "$IDEM_STORE, else $XDG_STATE_HOME/idem/run.db");
  add_run_options(leaf, *options);
  on_run(leaf, context, options, run);
}

}  // namespace idem::cli
