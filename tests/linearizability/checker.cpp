#include <algorithm>
#include <sstream>
#include <unordered_set>

#include "history.hpp"

namespace idem::linearizability {
namespace {

enum class Phase : std::uint8_t { absent, processing, success, failed_retryable, failed_final };

// The key between two operations.
struct State {
  Phase phase = Phase::absent;
  std::uint32_t owner = 0;
  std::uint32_t body = 0;
  std::uint32_t attempt = 0;
  std::uint32_t result = 0;
  std::uint64_t fence = 0;
  std::uint64_t last_fence = 0;  // ever, also of what was removed
  Time lease_until{};

  friend bool operator==(const State&, const State&) = default;
};

void grant(State& state, const Operation& op, std::uint32_t attempt) {
  state.phase = Phase::processing;
  state.owner = op.owner;
  state.attempt = attempt;
  state.result = 0;
  state.fence = op.fence;
  state.last_fence = std::max(state.last_fence, op.fence);
  state.lease_until = op.lease_until;
}

bool claim(State& state, const Operation& op) {
  const bool given = op.outcome == Outcome::claimed;
  if (state.phase == Phase::absent) {
    if (!given || op.attempt != 1 || op.fence <= state.last_fence) return false;
    state.body = op.body;
    grant(state, op, 1);
    return true;
  }
  if (op.body != state.body) return op.outcome == Outcome::mismatch;
  const bool new_attempt = given && op.attempt == state.attempt + 1 && op.fence > state.last_fence;
  switch (state.phase) {
    case Phase::success:
      return op.outcome == Outcome::replay && op.result == state.result;
    case Phase::failed_final:
      return op.outcome == Outcome::failed;
    case Phase::failed_retryable:
      if (!new_attempt) return false;
      grant(state, op, op.attempt);
      return true;
    case Phase::processing:
      break;
    case Phase::absent:
      return false;
  }
  if (op.outcome == Outcome::in_progress) {
    return op.attempt == state.attempt && op.clock_invoked < state.lease_until;
  }
  if (!new_attempt || op.clock_returned < state.lease_until) return false;
  grant(state, op, op.attempt);
  return true;
}

// What every report answers where the record is away or another's; nullopt: it is the caller's.
std::optional<bool> not_mine(const State& state, const Operation& op) {
  if (state.phase == Phase::absent) {
    return op.outcome == (op.verb == Verb::release ? Outcome::released : Outcome::gone);
  }
  if (state.owner == op.owner && state.fence == op.fence) return std::nullopt;
  return op.outcome == Outcome::lost &&
         op.result == (state.phase == Phase::success ? state.result : 0);
}

bool complete(State& state, const Operation& op) {
  switch (state.phase) {
    case Phase::processing:
      state.phase = Phase::success;
      state.result = op.payload;
      return op.outcome == Outcome::completed;
    case Phase::success:
      return state.result == op.payload
                 ? op.outcome == Outcome::completed
                 : op.outcome == Outcome::conflict && op.result == state.result;
    default:
      return op.outcome == Outcome::not_processing;
  }
}

bool fail(State& state, const Operation& op) {
  switch (state.phase) {
    case Phase::processing:
      state.phase = op.payload == 0 ? Phase::failed_retryable : Phase::failed_final;
      return op.outcome == Outcome::fail_recorded;
    case Phase::success:
      return op.outcome == Outcome::not_processing;
    default:
      return op.outcome == Outcome::fail_recorded;
  }
}

// Moves `state` by `op`; false: `op` cannot have answered so here.
bool apply(State& state, const Operation& op) {
  if (op.verb == Verb::claim) return claim(state, op);
  if (const auto decided = not_mine(state, op)) return *decided;
  switch (op.verb) {
    case Verb::complete:
      return complete(state, op);
    case Verb::fail:
      return fail(state, op);
    case Verb::release:
      if (state.phase != Phase::processing) return op.outcome == Outcome::not_processing;
      state.phase = Phase::absent;
      return op.outcome == Outcome::released;
    case Verb::renew:
      if (state.phase != Phase::processing) return op.outcome == Outcome::not_processing;
      state.lease_until = std::max(state.lease_until, op.lease_until);
      return op.outcome == Outcome::renewed;
    case Verb::claim:
      break;
  }
  return false;
}

// Moves `state` by an operation of which no answer is known; false: it can change nothing here.
// Only reports: an unknown claim's fence is known to nobody.
bool apply_unknown(State& state, const Operation& op) {
  if (state.phase != Phase::processing || state.owner != op.owner || state.fence != op.fence) {
    return false;
  }
  Operation done = op;
  switch (op.verb) {
    case Verb::complete:
      done.outcome = Outcome::completed;
      break;
    case Verb::fail:
      done.outcome = Outcome::fail_recorded;
      break;
    case Verb::release:
      done.outcome = Outcome::released;
      break;
    default:
      return false;
  }
  return apply(state, done);
}

struct Visited {
  std::uint64_t done;
  State state;
  friend bool operator==(const Visited&, const Visited&) = default;
};

struct VisitedHash {
  std::size_t operator()(const Visited& visited) const {
    std::size_t hash = visited.done;
    const auto mix = [&hash](std::uint64_t value) {
      hash = (hash ^ value) * 0x9E3779B97F4A7C15ULL;
      hash ^= hash >> 29;
    };
    mix(static_cast<std::uint64_t>(visited.state.phase));
    mix(visited.state.fence);
    mix(visited.state.owner);
    mix(visited.state.result);
    mix(static_cast<std::uint64_t>(visited.state.lease_until.time_since_epoch().count()));
    return hash;
  }
};

class Search {
 public:
  explicit Search(const std::vector<Operation>& history) : history_(history) {
    for (std::size_t i = 0; i < history_.size(); ++i) {
      if (history_[i].outcome != Outcome::unknown) must_ |= bit(i);
    }
  }

  bool run() { return step(0, State{}); }

 private:
  static std::uint64_t bit(std::size_t i) { return std::uint64_t{1} << i; }

  // Depth at most kOperationsMax.
  bool step(std::uint64_t done, const State& state) {  // NOLINT(misc-no-recursion)
    if ((done & must_) == must_) return true;
    if (!visited_.insert({done, state}).second) return false;
    // Whoever returned before another was called comes before it.
    std::uint64_t first_return = ~std::uint64_t{0};
    for (std::size_t i = 0; i < history_.size(); ++i) {
      const bool open = (done & bit(i)) == 0 && (must_ & bit(i)) != 0;
      if (open) first_return = std::min(first_return, history_[i].returned);
    }
    for (std::size_t i = 0; i < history_.size(); ++i) {
      const Operation& op = history_[i];
      if ((done & bit(i)) != 0 || op.invoked > first_return) continue;
      State next = state;
      const bool legal = op.outcome == Outcome::unknown ? apply_unknown(next, op) : apply(next, op);
      if (legal && step(done | bit(i), next)) return true;
    }
    return false;
  }

  const std::vector<Operation>& history_;
  std::uint64_t must_ = 0;
  std::unordered_set<Visited, VisitedHash> visited_;
};

const char* name(Verb verb) {
  constexpr const char* kNames[] = {"claim", "complete", "fail", "release", "renew"};
  return kNames[static_cast<std::size_t>(verb)];
}

const char* name(Outcome outcome) {
  constexpr const char* kNames[] = {
      "claimed", "in_progress",    "replay", "mismatch", "failed",   "completed", "conflict",
      "lost",    "not_processing", "gone",   "recorded", "released", "renewed",   "unknown"};
  return kNames[static_cast<std::size_t>(outcome)];
}

}  // namespace

std::string describe(const Operation& op) {
  const auto micros = [](Time at) { return at.time_since_epoch().count(); };
  std::ostringstream text;
  text << "[" << op.invoked << ".." << op.returned << "] owner " << op.owner << " "
       << name(op.verb);
  if (op.verb == Verb::claim) text << " body " << op.body;
  if (op.verb == Verb::complete) text << " result " << op.payload;
  text << " fence " << op.fence << " -> " << name(op.outcome);
  if (op.attempt != 0) text << " attempt " << op.attempt;
  if (op.result != 0) text << " result " << op.result;
  if (op.lease_until != Time{}) text << " lease until " << micros(op.lease_until);
  text << " at " << micros(op.clock_invoked) << ".." << micros(op.clock_returned);
  return text.str();
}

std::optional<std::string> violation(const std::vector<Operation>& history) {
  if (history.size() > kOperationsMax) return "more operations than the checker takes";
  if (Search(history).run()) return std::nullopt;
  std::vector<Operation> sorted = history;
  std::sort(sorted.begin(), sorted.end(),
            [](const Operation& a, const Operation& b) { return a.invoked < b.invoked; });
  std::string text = "no order of single steps explains:";
  for (const Operation& op : sorted) text += "\n  " + describe(op);
  return text;
}

}  // namespace idem::linearizability
