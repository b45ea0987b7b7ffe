// idem demo: the two promises of the library, kept before one's eyes. Every line is a fact that was
// checked; one that does not hold ends the demo with exit 1.
#include <fmt/core.h>

#include <barrier>
#include <cstdlib>
#include <filesystem>
#include <thread>

#include "commands.hpp"
#include "options.hpp"
#include "stop_on_signal.hpp"
#include "worker.hpp"

namespace idem::cli {

namespace {

struct Options {
  std::string worker_url;
};

constexpr Micros kLook = std::chrono::milliseconds(100);  // between two looks at the stop

// Prints facts as they are found; with --json keeps them.
class Transcript {
 public:
  explicit Transcript(bool json) : json_(json) {}

  void heading(std::string_view text) {
    if (!json_) print_text(fmt::format("\n{}\n", text));
  }
  void fact(bool holds, const std::string& text) {
    all_hold_ = all_hold_ && holds;
    facts_.push_back(Json{{"holds", holds}, {"fact", text}});
    if (!json_) print_text(fmt::format("  {}  {}\n", holds ? "ok" : "NO", text));
  }
  ExitCode end() const {
    if (json_)
      print_document(Json{{"outcome", all_hold_ ? "passed" : "failed"}, {"facts", facts_}});
    if (!json_) print_text(all_hold_ ? "\nall of it held\n" : "\nsomething did NOT hold\n");
    return all_hold_ ? ExitCode::done : ExitCode::check_failed;
  }

 private:
  bool json_;
  bool all_hold_ = true;
  Json facts_ = Json::array();
};

// Two threads, one request, one execution.
void show_duplicates(Transcript& transcript) {
  transcript.heading("Two calls of one request at the same time (memory:)");
  ServiceOptions options;
  options.policy.on_duplicate = OnDuplicate::wait;
  IdempotencyService service(must(open("memory:")), options);
  const Request request{"pay-42", Fingerprint::of_bytes("100 CNY")};
  std::atomic<int> executions{0};
  std::barrier together(2);
  std::optional<ExecuteOutcome> outcomes[2];
  const auto call = [&](std::optional<ExecuteOutcome>& outcome) {
    together.arrive_and_wait();
    auto answer = service.execute(request, [&](Attempt& attempt) {
      ++executions;
      system_clock().pause(std::chrono::milliseconds(300));
      return fmt::format(R"({{"payment":"P-{}"}})", attempt.fence());
    });
    if (answer) outcome = std::move(*answer);
  };
  {
    std::jthread first([&] { call(outcomes[0]); });
    std::jthread second([&] { call(outcomes[1]); });
  }
  const Executed* executed = nullptr;
  const Replay* replay = nullptr;
  for (const auto& outcome : outcomes) {
    if (!outcome) continue;
    if (const auto* found = std::get_if<Executed>(&*outcome)) executed = found;
    if (const auto* found = std::get_if<Replay>(&*outcome)) replay = found;
  }
  transcript.fact(executions == 1, fmt::format("executions: {}", executions.load()));
  transcript.fact(executed != nullptr,
                  "one call ran it:        " + (executed != nullptr ? executed->result : "-"));
  transcript.fact(replay != nullptr,
                  "the other got a replay: " + (replay != nullptr ? replay->result : "-"));
  transcript.fact(executed != nullptr && replay != nullptr && executed->result == replay->result,
                  "both have the same bytes");
}

// A directory of our own, gone with us.
class Scratch {
 public:
  Scratch() {
    std::string name = (std::filesystem::temp_directory_path() / "idem-demo-XXXXXX").string();
    if (mkdtemp(name.data()) == nullptr)
      throw Failure(fail(errc::cannot_open, "cannot make a directory like " + name));
    path_ = name;
  }
  Scratch(const Scratch&) = delete;
  Scratch& operator=(const Scratch&) = delete;
  ~Scratch() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  [[nodiscard]] std::string url() const { return "sqlite:///" + path_ + "/demo.db"; }

 private:
  std::string path_;
};

std::string told(const result<ClaimOutcome>& outcome) {
  return outcome ? to_json(*outcome).value("outcome", "") : outcome.error().message;
}

// A worker is killed in the middle; its lease ends; another takes over; the dead one's report,
// late, is refused. Ends early, and tidies up, when `stop` is raised.
void show_crash(Transcript& transcript, const std::atomic<bool>& stop) {
  transcript.heading("A worker dies in the middle of its work (sqlite:)");
  const Scratch scratch;
  Worker worker(scratch.url());
  const Token dead = worker.token();
  const int pid = worker.pid();
  IdempotencyService service(must(open(scratch.url())));
  const Request request{kDemoKey, Fingerprint::of_bytes("parcel 42")};

  transcript.fact(dead.fence != 0, fmt::format("worker {} claimed '{}' for {}, fence {}", pid,
                                               kDemoKey, human(kDemoLease), dead.fence));
  transcript.fact(worker.kill(), fmt::format("kill -9 {}", pid));
  const auto early = service.claim(request);
  transcript.fact(early && std::holds_alternative<InProgress>(*early),
                  "at once another claim gets: " + told(early));
  const Time patience = system_clock().now() + std::chrono::seconds(10);
  auto later = service.claim_or_wait(request, kLook);
  while (!stop && later && std::holds_alternative<InProgress>(*later) &&
         system_clock().now() < patience)
    later = service.claim_or_wait(request, kLook);
  if (stop) return;
  auto* claimed = later ? std::get_if<Claimed>(&*later) : nullptr;
  if (claimed == nullptr) return transcript.fact(false, "a takeover: " + told(later));
  Lease& lease = claimed->lease;
  transcript.fact(lease.kind() == ClaimKind::takeover && lease.fence() > dead.fence,
                  fmt::format("when the lease is over: {}, attempt {}, fence {} (higher)",
                              to_string(lease.kind()), lease.attempt(), lease.fence()));
  const auto completed = service.complete(lease, "shipped by the second worker");
  transcript.fact(completed && std::holds_alternative<Completed>(*completed),
                  "the second worker completes");

  Lease ghost = Lease::adopt(request, dead);
  const auto late = service.complete(ghost, "shipped by the first worker");
  transcript.fact(late && std::holds_alternative<Lost>(*late),
                  "the first worker's late complete is refused: " +
                      (late ? to_json(*late).value("outcome", "") : late.error().message));
  const auto after = service.claim(request);
  const auto* replay = after ? std::get_if<Replay>(&*after) : nullptr;
  transcript.fact(replay != nullptr && replay->result == "shipped by the second worker",
                  "everybody from now on gets: " + (replay != nullptr ? replay->result : "-"));
}

ExitCode demo(const Options& options, Context& context) {
  if (!options.worker_url.empty()) return be_worker(options.worker_url);
  const StopOnSignal stop;
  Transcript transcript(context.json);
  show_duplicates(transcript);
  if (!stop.flag()) show_crash(transcript, stop.flag());
  if (stop.flag()) return StopOnSignal::exit_code();
  return transcript.end();
}

}  // namespace

void add_demo(CLI::App& root, Context& context) {
  auto options = std::make_shared<Options>();
  CLI::App* leaf = add_leaf(root, context, "demo",
                            "See it work: duplicates, a crash, a takeover. No server, 3 seconds",
                            {"idem demo"}, kNoStore);
  leaf->add_option("--worker", options->worker_url)->group("");  // the demo's own second process
  on_run(leaf, context, options, demo);
}

}  // namespace idem::cli
