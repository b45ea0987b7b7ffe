// DecisionTable: every cell of decision_table.hpp on the store at hand.
#include <gtest/gtest.h>

#include <cstdio>
#include <functional>
#include <map>
#include <set>

#include "decision_table.hpp"
#include "idem/conformance/suites.hpp"
#include "idem/testing/describe.hpp"
#include "scene.hpp"

namespace idem::conformance {
namespace {

using namespace std::chrono_literals;

// --- answers as words ------------------------------------------------------------------------

std::string with(std::string word, std::uint64_t number) {
  return std::move(word) + ":" + std::to_string(number);
}
std::string word(const Claimed& o) {
  return with(std::string(to_string(o.lease.kind())), o.lease.attempt());
}
std::string word(const InProgress& o) { return with("in_progress", o.attempt); }
std::string word(const Replay& o) {
  if (o.result != kFirst) return "replay of " + testing::quote(o.result);
  return o.own ? "replay:own" : "replay";
}
std::string word(const Mismatch&) { return "mismatch"; }
std::string word(const Backoff&) { return "backoff"; }
std::string word(const Failed&) { return "failed"; }
std::string word(const Exhausted& o) { return with("exhausted", o.attempts); }
std::string word(const InDoubt& o) { return with("in_doubt", o.attempt); }
std::string word(const AlreadyDone&) { return "already_done"; }
std::string word(const Claimable&) { return "claimable"; }
std::string word(const Completed& o) {
  return std::string("completed") + (o.late ? ":late" : "") + (o.already ? ":already" : "");
}
std::string word(const Lost& o) { return o.result ? "lost:" + *o.result : "lost"; }
std::string word(const Conflict& o) { return "conflict:" + o.result; }
std::string word(const NotProcessing&) { return "not_processing"; }
std::string word(const Gone&) { return "gone"; }
std::string word(const FailRecorded& o) {
  return o.already ? "fail_recorded:already" : "fail_recorded";
}
std::string word(const Renewed& o) { return o.late ? "renewed:late" : "renewed"; }
std::string word(const RenewRefused&) { return "renew_refused"; }
std::string word(const Released&) { return "released"; }

template <class... Alternatives>
std::string word(const result<std::variant<Alternatives...>>& answer) {
  if (answer.has_error()) return testing::describe(answer.error());
  return std::visit([](const auto& one) { return word(one); }, *answer);
}
std::string word(const result<void>& answer) {
  return answer.has_error() ? std::string(to_string(answer.error().code)) : "done";
}
std::string word(const result<std::optional<Found>>& answer) {
  if (answer.has_error()) return testing::describe(answer.error());
  return answer->has_value() ? std::string(to_string((*answer)->record.status)) : "absent";
}

// A repeated call cannot know whether its first try was the one that counted.
std::string without_details(std::string cell) {
  const std::size_t after = cell.find('>');
  std::string head = cell.substr(0, after);
  for (const char* kind : {"fresh", "retry", "takeover", "resumed"}) {
    if (head.starts_with(kind)) head = "claimed" + head.substr(head.find(':'));
  }
  for (const char* detail : {":late", ":already"}) {
    const std::size_t at = head.find(detail);
    if (at != std::string::npos) head.erase(at);
  }
  return head + cell.substr(after);
}

// --- the count, told at the end --------------------------------------------------------------

struct Count {
  std::map<std::string, std::set<std::string>> stores_by_verb;
  std::map<std::string, std::uint64_t> cells_by_store;
  std::uint64_t differences = 0;
};
Count& total() {
  static Count count;
  return count;
}

class TellTotal : public ::testing::Environment {
 public:
  void TearDown() override {
    if (total().cells_by_store.empty()) return;
    std::printf("decision table: %zu stores, %llu differences\n", total().cells_by_store.size(),
                static_cast<unsigned long long>(total().differences));
    for (const auto& [store, cells] : total().cells_by_store) {
      std::printf("  %-24s %llu cells\n", store.c_str(), static_cast<unsigned long long>(cells));
    }
  }
};
const ::testing::Environment* const kTellTotal =
    ::testing::AddGlobalTestEnvironment(new TellTotal);  // GoogleTest owns it

// --- the stage -------------------------------------------------------------------------------

// Judges cells on behalf of one test. Cells of one state are gathered and played together.
class Stage {
 public:
  // What is done to a scene; answers in words. Everything it captures must outlive play().
  using Play = std::function<std::string(Scene&)>;

  Stage(std::string store, bool exact, IdempotencyService& service, IdempotencyStore& raw_store,
        std::function<void(Duration)> advance)
      : store_(std::move(store)),
        exact_(exact),
        raw_store_(raw_store),
        scenery_(service, raw_store, std::move(advance)) {}

  // One cell: `verb` must answer and leave what `expected` says.
  void cell(const std::string& column, std::string_view expected, Play verb) {
    cells_.push_back({column, std::string(expected), std::move(verb)});
  }

  // Plays the cells gathered since the last time, each on a scene of its own in `state`.
  void play(std::string_view state) {
    auto scenes = scenery_.make(state, cells_.size());
    for (std::size_t i = 0; i < scenes.size(); ++i) judge(cells_[i], scenes[i]);
    total().cells_by_store[store_] += cells_.size();
    cells_.clear();
  }

 private:
  struct Cell {
    std::string column;
    std::string expected;
    Play verb;
  };

  void judge(const Cell& cell, Scene& scene) {
    std::string wanted = cell.expected;
    std::string actual = cell.verb(scene) + ">";
    const auto after = raw(raw_store_, scene.key);
    // An expired record is absent; it may be freed by whoever comes across it.
    const bool freed = !after && scene.state[0] == 'X';
    if (freed && wanted.ends_with(">N")) wanted.replace(wanted.size() - 1, 1, "=");
    actual += after == scene.before || freed ? "=" : state_of(after, scenery_.now());
    if (!exact_) {
      actual = without_details(actual);
      wanted = without_details(wanted);
    }
    const std::string name = scene.state + " x " + cell.column;
    check_rules(scene, after, name);
    if (actual == wanted) return;
    ++total().differences;
    ADD_FAILURE() << name << ": expected " << wanted << ", got " << actual
                  << "\n  before: " << (scene.before ? testing::describe(*scene.before) : "nothing")
                  << "\n  after:  " << (after ? testing::describe(*after) : "nothing");
  }

  // What no cell may break: hash, versions and fences of a record that was written.
  static void check_rules(const Scene& scene, const std::optional<Record>& after,
                          const std::string& name) {
    if (!after || !scene.before || *after == *scene.before) return;
    EXPECT_GT(after->version, scene.before->version) << name;
    EXPECT_GE(after->fence, scene.before->fence) << name;
    EXPECT_LE(after->fence, after->version) << name;
    if (scene.state[0] != 'X') {
      EXPECT_EQ(after->request_hash, scene.before->request_hash) << name;
    }
  }

  std::string store_;
  bool exact_;
  IdempotencyStore& raw_store_;
  Scenery scenery_;
  std::vector<Cell> cells_;
};

#define IDEM_STAGE() \
  Stage stage(GetParam().name, exact(), service(), store(), [this](Duration d) { advance(d); })

// The row's cells for `state`. A state that stands in no row, or in two, is a fault of the table.
template <std::size_t Columns, std::size_t Rows>
const std::array<std::string_view, Columns>& cells(const table::Row<Columns> (&rows)[Rows],
                                                   std::string_view state) {
  const table::Row<Columns>* found = nullptr;
  const std::string wanted = " " + std::string(state) + " ";
  for (const auto& row : rows) {
    if ((" " + std::string(row.states) + " ").find(wanted) == std::string::npos) continue;
    if (found != nullptr) throw std::logic_error("two rows for " + std::string(state));
    found = &row;
  }
  if (found == nullptr) throw std::logic_error("no row for " + std::string(state));
  return found->cells;
}

// --- who acts --------------------------------------------------------------------------------

// The own token, as the claim's lease and as told to another process.
enum class Mine { lease, adopted };
// Tokens that are not the current one, each wrong in its own way.
enum class NotMine { stranger, previous, own_owner_old_fence, old_incarnation };

constexpr Mine kMine[] = {Mine::lease, Mine::adopted};
constexpr NotMine kNotMine[] = {NotMine::stranger, NotMine::previous, NotMine::own_owner_old_fence,
                                NotMine::old_incarnation};

Lease lease_of(Scene& scene, Mine who) {
  if (who == Mine::lease) return std::move(*scene.mine);
  return Lease::adopt(scene.request(), scene.mine->token());
}

Lease lease_of(Scene& scene, NotMine who) {
  Token token = scene.mine->token();
  switch (who) {
    case NotMine::stranger:
      token.owner.bytes[15] ^= 1;
      return Lease::adopt(scene.request(), token);
    case NotMine::previous:
      return std::move(*scene.previous);
    case NotMine::own_owner_old_fence:
      token.fence = scene.previous->fence();
      return Lease::adopt(scene.request(), token);
    case NotMine::old_incarnation:
      return std::move(*scene.old);
  }
  throw std::logic_error("no such token");
}

using LeaseVerb = std::function<std::string(Lease&)>;

// All ways to hold the own token must answer alike; so must all wrong ones.
void own_cells(Stage& stage, const std::string& column, std::string_view expected,
               const LeaseVerb& verb) {
  for (const Mine who : kMine) {
    stage.cell(column + (who == Mine::lease ? " own" : " own, adopted"), expected,
               [who, verb](Scene& scene) {
                 Lease lease = lease_of(scene, who);
                 return verb(lease);
               });
  }
}

void wrong_cells(Stage& stage, const std::string& column, std::string_view expected,
                 const LeaseVerb& verb) {
  constexpr const char* kNames[] = {" stranger", " previous", " own owner, old fence",
                                    " old incarnation"};
  for (const NotMine who : kNotMine) {
    stage.cell(column + kNames[static_cast<int>(who)], expected, [who, verb](Scene& scene) {
      Lease lease = lease_of(scene, who);
      return verb(lease);
    });
  }
}

// --- the blocks ------------------------------------------------------------------------------

template <std::size_t Rows>
void claim_block(Stage& stage, IdempotencyService& service, const std::string& name,
                 const PolicyPatch& policy, const table::ClaimRow (&rows)[Rows]) {
  const auto claim = [&](const Scene& scene, const std::optional<Owner>& owner,
                         std::string_view body) {
    CallOptions options;
    options.policy = policy;
    options.owner = owner;
    return word(service.claim(scene.request(body), options));
  };
  for (const std::string_view state : table::kStates) {
    const auto& [own, other, mismatch] = cells(rows, state);
    stage.cell(name + " own", own,
               [&](Scene& s) { return claim(s, s.mine->token().owner, kBody); });
    stage.cell(name + " other", other, [&](Scene& s) { return claim(s, std::nullopt, kBody); });
    stage.cell(name + " previous", other,
               [&](Scene& s) { return claim(s, s.previous->token().owner, kBody); });
    stage.cell(name + " old incarnation", other,
               [&](Scene& s) { return claim(s, s.old->token().owner, kBody); });
    stage.cell(name + " own, other hash", mismatch,
               [&](Scene& s) { return claim(s, s.mine->token().owner, "another"); });
    stage.cell(name + " other, other hash", mismatch,
               [&](Scene& s) { return claim(s, std::nullopt, "another"); });
    stage.play(state);
  }
}

PolicyPatch hold() {
  PolicyPatch patch;
  patch.on_lapsed = OnLapsed::hold;
  return patch;
}
PolicyPatch no_retry() {
  PolicyPatch patch;
  patch.retry_failed = false;
  return patch;
}
PolicyPatch capped() {
  PolicyPatch patch;
  patch.max_attempts = 2;
  return patch;
}
PolicyPatch terse() {
  PolicyPatch patch;
  patch.return_original_result = false;
  return patch;
}
PolicyPatch disabled() {
  PolicyPatch patch;
  patch.enabled = false;
  return patch;
}

TEST_P(DecisionTable, Claim) {
  IDEM_STAGE();
  claim_block(stage, service(), "claim", {}, table::kClaim);
  claim_block(stage, service(), "claim, hold", hold(), table::kClaimHold);
  claim_block(stage, service(), "claim, no retry", no_retry(), table::kClaimNoRetry);
  claim_block(stage, service(), "claim, capped", capped(), table::kClaimCapped);
  claim_block(stage, service(), "claim, terse", terse(), table::kClaimTerse);
  claim_block(stage, service(), "claim, disabled", disabled(), table::kClaimDisabled);
}

TEST_P(DecisionTable, Wait) {
  if (!exact()) GTEST_SKIP() << "missing: reads that arrive (nothing is left to wait for)";
  IDEM_STAGE();
  const auto wait = [&](const Scene& scene, const PolicyPatch& policy, std::string_view body) {
    CallOptions options;
    options.policy = policy;
    return word(service().wait(scene.request(body), 0s, options));
  };
  const PolicyPatch patches[] = {{}, hold(), no_retry(), capped(), terse(), {}};
  for (const std::string_view state : table::kStates) {
    const auto& row = cells(table::kWait, state);
    for (std::size_t i = 0; i < row.size(); ++i) {
      stage.cell("wait " + std::to_string(i), row[i],
                 [&, i](Scene& s) { return wait(s, patches[i], i == 5 ? "another" : kBody); });
    }
    stage.play(state);
  }
}

TEST_P(DecisionTable, Complete) {
  IDEM_STAGE();
  const auto complete = [&](std::string_view payload) {
    return [this, payload](Lease& lease) { return word(service().complete(lease, payload)); };
  };
  for (const std::string_view state : table::kStates) {
    const auto& [same, other, lost] = cells(table::kComplete, state);
    own_cells(stage, "complete first", same, complete(kFirst));
    own_cells(stage, "complete second", other, complete("second"));
    wrong_cells(stage, "complete first", lost, complete(kFirst));
    wrong_cells(stage, "complete second", lost, complete("second"));
    stage.play(state);
  }
}

TEST_P(DecisionTable, Fail) {
  IDEM_STAGE();
  const auto fail = [&](FailKind kind, Duration retry_after) {
    return [this, kind, retry_after](Lease& lease) {
      return word(service().fail(lease, kind, "why", retry_after));
    };
  };
  for (const std::string_view state : table::kStates) {
    const auto& [retryable, later, final, lost] = cells(table::kFail, state);
    own_cells(stage, "fail retryable", retryable, fail(FailKind::retryable, 0s));
    own_cells(stage, "fail later", later, fail(FailKind::retryable, 50s));
    own_cells(stage, "fail final", final, fail(FailKind::final, 0s));
    wrong_cells(stage, "fail retryable", lost, fail(FailKind::retryable, 0s));
    wrong_cells(stage, "fail final", lost, fail(FailKind::final, 0s));
    stage.play(state);
  }
}

TEST_P(DecisionTable, RenewAndRelease) {
  IDEM_STAGE();
  const LeaseVerb renew = [&](Lease& lease) { return word(service().renew(lease)); };
  const LeaseVerb release = [&](Lease& lease) { return word(service().release(lease)); };
  for (const std::string_view state : table::kStates) {
    const auto& [renewed, renew_lost] = cells(table::kRenew, state);
    own_cells(stage, "renew", renewed, renew);
    wrong_cells(stage, "renew", renew_lost, renew);
    const auto& [released, release_lost] = cells(table::kRelease, state);
    own_cells(stage, "release", released, release);
    wrong_cells(stage, "release", release_lost, release);
    stage.play(state);
  }
}

TEST_P(DecisionTable, GetAndSweep) {
  IDEM_STAGE();
  for (const std::string_view state : table::kStates) {
    const auto& [got, swept] = cells(table::kLook, state);
    stage.cell("get", got, [&](Scene& s) { return word(service().get(Key(s.key))); });
    stage.cell("sweep", swept, [&](Scene&) -> std::string {
      for (;;) {
        const auto step = service().sweep(7);
        if (step.has_error()) return testing::describe(step);
        if (step->abandoned + step->expired == 0) return "swept";
      }
    });
    stage.play(state);
  }
}

TEST_P(DecisionTable, Administration) {
  if (!exact()) GTEST_SKIP() << "missing: replies that arrive (a repeat finds its fence stale)";
  IDEM_STAGE();
  using Admin = std::function<std::string(const Key&, std::uint64_t)>;
  const Admin verbs[] = {
      [&](const Key& k, std::uint64_t fence) { return word(service().force_release(k, fence)); },
      [&](const Key& k, std::uint64_t fence) { return word(service().force_fail(k, fence, "no")); },
      [&](const Key& k, std::uint64_t fence) {
        return word(service().resolve(k, fence, ResolveSuccess{"found out"}));
      },
      [&](const Key& k, std::uint64_t fence) {
        return word(service().resolve(k, fence, ResolveFailure{"no", FailKind::retryable}));
      }};
  constexpr const char* kNames[] = {"force_release", "force_fail", "resolve success",
                                    "resolve retryable"};
  for (const std::string_view state : table::kStates) {
    const auto& row = cells(table::kAdmin, state);
    for (std::size_t i = 0; i < std::size(verbs); ++i) {
      stage.cell(kNames[i], row[i],
                 [&, i](Scene& s) { return verbs[i](Key(s.key), s.mine->fence()); });
      stage.cell(std::string(kNames[i]) + ", previous fence", row[4],
                 [&, i](Scene& s) { return verbs[i](Key(s.key), s.previous->fence()); });
      stage.cell(std::string(kNames[i]) + ", fence + 1", row[4],
                 [&, i](Scene& s) { return verbs[i](Key(s.key), s.mine->fence() + 1); });
    }
    stage.play(state);
  }
}

}  // namespace
}  // namespace idem::conformance
