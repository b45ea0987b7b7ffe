// The service's verbs over the memory store under every schedule: claims, takeovers and stale
// owners. Two checkers judge each: the one of tests/linearizability the verbs' outcomes, and the
// world's own every call that the service made of the store.
#include <map>

#include "../../linearizability/history.hpp"
#include "idem/service.hpp"
#include "idem/testing/forwarding_store.hpp"
#include "world.hpp"

namespace idem::schedules {
namespace {

using linearizability::Operation;
using linearizability::Outcome;
using linearizability::violation;

constexpr const char* kKey = "3-pay";

// Writes down every call in the world's history.
class Recorded final : public testing::ForwardingStore {
 public:
  explicit Recorded(World& world)
      : ForwardingStore(StorePtr(&world.store, [](MemoryStore*) {})), history_(world.history) {}
  void insert(std::span<Insert> ops) override {
    for (Insert& op : ops) op.answer = history_.insert(op.key.key, op.draft);
  }
  void replace(std::span<Replace> ops) override {
    for (Replace& op : ops) op.answer = history_.replace(op.key.key, op.expected, op.draft);
  }
  void load(std::span<Load> ops) override {
    for (Load& op : ops) op.answer = history_.load(op.key.key);
  }
  void remove(std::span<Remove> ops) override {
    for (Remove& op : ops) op.answer = history_.remove(op.key.key, op.expected);
  }

 private:
  StoreHistory& history_;
};

// A service over the world's store, and what was asked of it. Owners and results are the callers'
// numbers.
class Verbs {
 public:
  explicit Verbs(World& world)
      : clock_(world.clock), service_(std::make_shared<Recorded>(world), options(world.clock)) {}

  Outcome claim(std::uint32_t by) {
    Operation& op = begin(linearizability::Verb::claim, by);
    op.body = 1;
    auto answer = service_.claim({Key(kKey), Fingerprint::of_bytes("body")});
    if (auto* const mine = std::get_if<Claimed>(&answer.value())) {
      op.outcome = Outcome::claimed;
      op.fence = mine->lease.fence();
      op.attempt = mine->lease.attempt();
      op.lease_until = mine->lease.lease_until();
      leases_.emplace(by, std::move(mine->lease));
    } else if (const auto* const running = std::get_if<InProgress>(&answer.value())) {
      op.outcome = Outcome::in_progress;
      op.attempt = running->attempt;
    } else if (const auto* const replay = std::get_if<Replay>(&answer.value())) {
      op.outcome = Outcome::replay;
      op.result = number(replay->result);
    }
    return end(op);
  }
  Outcome complete(std::uint32_t by) {
    Operation& op = begin(linearizability::Verb::complete, by);
    op.payload = by;
    op.fence = leases_.at(by).fence();
    const auto answer = service_.complete(leases_.at(by), std::to_string(by)).value();
    if (std::holds_alternative<Completed>(answer)) op.outcome = Outcome::completed;
    take_refusal(op, answer);
    return end(op);
  }
  Outcome release(std::uint32_t by) {
    Operation& op = begin(linearizability::Verb::release, by);
    op.fence = leases_.at(by).fence();
    const auto answer = service_.release(leases_.at(by)).value();
    if (std::holds_alternative<Released>(answer)) op.outcome = Outcome::released;
    take_refusal(op, answer);
    return end(op);
  }
  [[nodiscard]] std::string broken() const { return violation(history_).value_or(""); }
  [[nodiscard]] int count(Outcome outcome) const {
    int sum = 0;
    for (const Operation& op : history_) sum += op.outcome == outcome ? 1 : 0;
    return sum;
  }

 private:
  [[nodiscard]] static ServiceOptions options(VirtualClock& clock) {
    ServiceOptions made;
    made.clock = &clock;
    return made;
  }
  [[nodiscard]] static std::uint32_t number(const std::string& result) {
    return static_cast<std::uint32_t>(std::stoul(result));
  }
  template <class Answer>
  static void take_refusal(Operation& op, const Answer& answer) {
    if (std::holds_alternative<NotProcessing>(answer)) op.outcome = Outcome::not_processing;
    if (const auto* const lost = std::get_if<Lost>(&answer)) {
      op.outcome = Outcome::lost;
      op.result = lost->result ? number(*lost->result) : 0;
    }
    if constexpr (std::is_same_v<Answer, CompleteOutcome>)
      if (std::holds_alternative<Gone>(answer)) op.outcome = Outcome::gone;
  }
  // An answer that is none of those named stays unknown, which no claim may be.
  Operation& begin(linearizability::Verb verb, std::uint32_t by) {
    history_.reserve(linearizability::kOperationsMax);  // so that they stay where they are
    Operation& op = history_.emplace_back();
    op.verb = verb;
    op.owner = by;
    op.clock_invoked = clock_.now();
    op.invoked = ++ticks_;
    op.returned = ~std::uint64_t{0};
    return op;
  }
  Outcome end(Operation& op) {
    op.returned = ++ticks_;
    op.clock_returned = clock_.now();
    return op.outcome;
  }

  VirtualClock& clock_;
  IdempotencyService service_;
  std::vector<Operation> history_;
  std::map<std::uint32_t, Lease> leases_;
  std::uint64_t ticks_ = 0;
};

Verbs& verbs(World& world) { return *static_cast<Verbs*>(world.beside.get()); }

[[nodiscard]] std::string judge(World& world, const std::string& outcome) {
  verbs(world).claim(9);  // sees what is left
  const std::string broken = verbs(world).broken();
  return broken.empty() ? outcome : "!" + broken;
}

// Whoever claims a key that is free or lapsed runs it to its end; a released one is claimed again.
TEST(ServiceSchedulesTest, ClaimsAgainstARelease) {
  Scenario scenario;
  scenario.setup = [](World& world) { world.beside = std::make_shared<Verbs>(world); };
  scenario.threads.emplace_back([](World& world) {
    if (verbs(world).claim(1) == Outcome::claimed) verbs(world).release(1);
  });
  scenario.threads.emplace_back([](World& world) {
    if (verbs(world).claim(2) == Outcome::claimed) verbs(world).complete(2);
  });
  scenario.outcome = [](World& world) {
    const int claimed = verbs(world).count(Outcome::claimed);
    return judge(world, std::to_string(claimed) + " claimed, " +
                            std::to_string(verbs(world).count(Outcome::completed)) + " completed");
  };
  expect_outcomes(explore_store(scenario),
                  {"1 claimed, 0 completed", "1 claimed, 1 completed", "2 claimed, 1 completed"});
}

// A lease is over. Its owner completes late while two others claim, and complete what they got.
TEST(ServiceSchedulesTest, TakeoversAgainstTheLateOwner) {
  Scenario scenario;
  scenario.setup = [](World& world) {
    world.beside = std::make_shared<Verbs>(world);
    verbs(world).claim(1);
    world.clock.advance(30s);
  };
  scenario.threads.emplace_back([](World& world) { verbs(world).complete(1); });
  for (const std::uint32_t by : {2U, 3U})
    scenario.threads.emplace_back([by](World& world) {
      if (verbs(world).claim(by) == Outcome::claimed) verbs(world).complete(by);
    });
  scenario.outcome = [](World& world) {
    if (verbs(world).count(Outcome::completed) != 1) return std::string("!not one completion");
    return judge(world, verbs(world).count(Outcome::lost) == 1 ? "taken over" : "completed late");
  };
  expect_outcomes(explore_store(scenario), {"taken over", "completed late"});
}

}  // namespace
}  // namespace idem::schedules
