#include "recorder.hpp"

#include <algorithm>
#include <atomic>
#include <barrier>
#include <random>
#include <thread>

namespace idem::linearizability {
namespace {

using namespace std::chrono_literals;

constexpr std::size_t kKeys = 3;

// A text of the test's own making, as a number: "r17" is 17.
std::uint32_t number(const std::string& text) {
  return text.size() < 2 ? 0 : static_cast<std::uint32_t>(std::stoul(text.substr(1)));
}

struct Shared {
  IdempotencyService& service;
  VirtualClock& clock;
  std::uint64_t seed;
  std::atomic<std::uint64_t> ticks{0};
  std::atomic<std::uint32_t> owners{0};
};

struct Held {
  std::size_t key;
  std::uint32_t owner;
  Lease lease;
};

class Worker {
 public:
  Worker(Shared& shared, std::size_t index) : shared_(shared), random_(shared.seed * 97 + index) {}

  void run(std::size_t calls) {
    for (std::size_t i = 0; i < calls; ++i) {
      if (below(8) == 0) shared_.clock.advance(10s);
      if (held_.empty() || below(5) < 2) {
        claim();
      } else {
        report();
      }
      if (below(3) == 0) std::this_thread::yield();
    }
  }

  std::vector<std::pair<std::size_t, Operation>> done;  // key, operation

 private:
  std::size_t below(std::size_t limit) {
    return std::uniform_int_distribution<std::size_t>(0, limit - 1)(random_);
  }

  void begin(Operation& op) {
    op.clock_invoked = shared_.clock.now();
    op.invoked = ++shared_.ticks;
  }
  void end(std::size_t key, Operation& op) {
    op.returned = ++shared_.ticks;
    op.clock_returned = shared_.clock.now();
    done.emplace_back(key, op);
  }

  void claim() {
    const std::size_t key = below(kKeys);
    Operation op;
    op.verb = Verb::claim;
    op.owner = ++shared_.owners;
    op.body = below(12) == 0 ? 2 : 1;
    const Request request{Key(std::to_string(shared_.seed) + "-" + std::to_string(key)),
                          Fingerprint::of_bytes(op.body == 1 ? "body" : "another")};
    begin(op);
    auto answer = shared_.service.claim(request);
    if (answer.has_value()) std::visit([&](auto& one) { take(op, one); }, *answer);
    end(key, op);
    if (op.outcome != Outcome::claimed) return;
    held_.push_back({key, op.owner, std::move(std::get<Claimed>(*answer).lease)});
  }

  static void take(Operation& op, const Claimed& one) {
    op.outcome = Outcome::claimed;
    op.fence = one.lease.fence();
    op.attempt = one.lease.attempt();
    op.lease_until = one.lease.lease_until();
  }
  static void take(Operation& op, const InProgress& one) {
    op.outcome = Outcome::in_progress;
    op.attempt = one.attempt;
  }
  static void take(Operation& op, const Replay& one) {
    op.outcome = Outcome::replay;
    op.result = number(one.result);
  }
  static void take(Operation& op, const Mismatch&) { op.outcome = Outcome::mismatch; }
  static void take(Operation& op, const Failed&) { op.outcome = Outcome::failed; }
  static void take(Operation& op, const Completed&) { op.outcome = Outcome::completed; }
  static void take(Operation& op, const Conflict& one) {
    op.outcome = Outcome::conflict;
    op.result = number(one.result);
  }
  static void take(Operation& op, const Lost& one) {
    op.outcome = Outcome::lost;
    op.result = one.result ? number(*one.result) : 0;
  }
  static void take(Operation& op, const NotProcessing&) { op.outcome = Outcome::not_processing; }
  static void take(Operation& op, const Gone&) { op.outcome = Outcome::gone; }
  static void take(Operation& op, const FailRecorded&) { op.outcome = Outcome::fail_recorded; }
  static void take(Operation& op, const Released&) { op.outcome = Outcome::released; }
  static void take(Operation& op, const Renewed& one) {
    op.outcome = Outcome::renewed;
    op.lease_until = one.lease_until;
  }
  // Answers that these calls cannot get: the checker finds no place for a claim that is unknown.
  template <class Other>
  static void take(Operation&, const Other&) {}

  template <class Answer>
  void take_answer(Operation& op, const Answer& answer) {
    if (answer.has_value()) std::visit([&](const auto& one) { take(op, one); }, *answer);
  }

  // Leases stay here after they ended or were lost: stale workers are what is looked for.
  void report() {
    const std::size_t index = below(held_.size());
    Held& held = held_[index];
    Operation op;
    op.owner = held.owner;
    op.fence = held.lease.fence();
    const std::size_t dice = below(10);
    if (dice < 5) {
      op.verb = Verb::complete;
      op.payload = below(3) == 0 ? 1 : op.owner + 1;
      const std::string result = "r" + std::to_string(op.payload);
      begin(op);
      take_answer(op, shared_.service.complete(held.lease, result));
    } else if (dice < 7) {
      op.verb = Verb::fail;
      op.payload = below(4) == 0 ? 1 : 0;
      begin(op);
      take_answer(
          op, shared_.service.fail(held.lease,
                                   op.payload == 0 ? FailKind::retryable : FailKind::final, "x"));
    } else if (dice < 8) {
      op.verb = Verb::release;
      begin(op);
      take_answer(op, shared_.service.release(held.lease));
    } else {
      op.verb = Verb::renew;
      begin(op);
      take_answer(op, shared_.service.renew(held.lease));
    }
    end(held.key, op);
    if (held_.size() > 6) held_.erase(held_.begin());
  }

  Shared& shared_;
  std::mt19937_64 random_;
  std::vector<Held> held_;
};

}  // namespace

Recording record(IdempotencyService& service, VirtualClock& clock, std::uint64_t seed,
                 std::size_t threads, std::size_t calls) {
  Shared shared{service, clock, seed};
  std::vector<Worker> workers;
  for (std::size_t i = 0; i < threads; ++i) workers.emplace_back(shared, i);
  {
    std::barrier<> start(static_cast<std::ptrdiff_t>(threads));
    std::vector<std::jthread> running;
    for (Worker& worker : workers) {
      running.emplace_back([&] {
        start.arrive_and_wait();
        worker.run(calls);
      });
    }
  }
  Recording run;
  run.histories.resize(kKeys);
  for (const Worker& worker : workers) {
    for (const auto& [key, op] : worker.done) {
      run.histories[key].push_back(op);
      ++run.mix[op.outcome];
      if (op.outcome == Outcome::claimed && op.attempt > 1) ++run.takeovers;
    }
  }
  return run;
}

}  // namespace idem::linearizability
