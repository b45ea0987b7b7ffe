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

// --- scenes ----------------------------------------------------------------------------------

// Brings scenes about and judges cells, on behalf of one test.
class Stage {
 public:
  Stage(std::string store, bool exact, IdempotencyService& service, IdempotencyStore& raw_store,
        std::function<void(Duration)> advance)
      : store_(std::move(store)),
        exact_(exact),
        service_(service),
        raw_store_(raw_store),
        advance_(std::move(advance)) {}

  ~Stage() { total().cells_by_store[store_] += cells_; }

  Scene scene(std::string_view state) {
    Scene made;
    made.state = state;
    made.key = "cell-" + std::to_string(next_++);
    CallOptions options;
    if (state == "D" || state == "DS") options.policy.on_lapsed = OnLapsed::hold;
    made.old.emplace(claimed(made, options));
    force_away(made, *made.old);
    made.previous.emplace(claimed(made, options));
    advance_(30s);
    CallOptions over = options;
    over.policy.on_lapsed = OnLapsed::takeover;
    made.mine.emplace(claimed(made, over));
    if (options.policy.on_lapsed) must(service_.renew(*made.mine, options).has_value(), "renew");
    bring_about(made);
    made.before = raw(raw_store_, made.key);
    const std::string is = state_of(made.before, now());
    const std::string should = state == "A" || state == "SW"      ? "N"
                               : state == "PS" || state[0] == 'D' ? "PX"
                               : state[0] == 'X'                  ? "X"
                                                                  : std::string(state);
    must(is == should, "the scene " + made.state + " came out as " + is);
    return made;
  }

  // One cell: `verb` acts on a scene of `state` and must answer and leave what `expected` says.
  void cell(std::string_view state, const std::string& column, std::string_view expected,
            const std::function<std::string(Scene&)>& verb) {
    Scene made = scene(state);
    ++cells_;
    std::string actual = verb(made) + ">";
    const auto after = raw(raw_store_, made.key);
    actual += after == made.before ? "=" : state_of(after, now());
    std::string wanted(expected);
    if (!exact_) {
      actual = without_details(actual);
      wanted = without_details(wanted);
    }
    check_rules(made, after, column);
    if (actual == wanted) return;
    ++total().differences;
    ADD_FAILURE() << state << " x " << column << ": expected " << wanted << ", got " << actual
                  << "\n  before: " << (made.before ? testing::describe(*made.before) : "nothing")
                  << "\n  after:  " << (after ? testing::describe(*after) : "nothing");
  }

 private:
  void must(bool ok, const std::string& what) const {
    if (!ok) throw std::runtime_error(what);
  }

  Time now() {
    Load op{{"", "", "now"}, {}};
    do raw_store_.load({&op, 1});
    while (op.answer.state == Answer::State::failed);
    return op.answer.now;
  }

  Lease claimed(const Scene& made, const CallOptions& options) {
    auto outcome = service_.claim(made.request(), options);
    must(outcome.has_value() && std::holds_alternative<Claimed>(*outcome),
         "claim: " + testing::describe(outcome));
    return std::move(std::get<Claimed>(*outcome).lease);
  }

  void fail(Scene& made, FailKind kind, Duration retry_after = Micros(0)) {
    must(service_.fail(*made.mine, kind, kFirst, retry_after).has_value(), "fail");
  }

  // Removes the record, the lease's handle being none the wiser. Where the reply was lost the
  // answer may be stale_fence: what counts is that the record is away.
  void force_away(const Scene& made, const Lease& lease) {
    (void)service_.force_release(Key(made.key), lease.fence());
    must(!raw(raw_store_, made.key), "force_release left the record");
  }

  void bring_about(Scene& made) {
    const std::string& state = made.state;
    if (state == "A") {
      force_away(made, *made.mine);
    } else if (state == "PL") {
      advance_(10s);
    } else if (state == "PX" || state == "D") {
      advance_(40s);
    } else if (state == "PS" || state == "DS") {
      advance_(600s);
    } else if (state == "S" || state == "XS" || state == "SW") {
      must(service_.complete(*made.mine, kFirst).has_value(), "complete");
    } else if (state == "FR") {
      fail(made, FailKind::retryable);
    } else if (state == "FB") {
      fail(made, FailKind::retryable, 100s);
    } else if (state == "FF" || state == "XF") {
      fail(made, FailKind::final);
    } else if (state == "AB") {
      advance_(600s);
      sweep();
    }
    if (state[0] == 'X' || state == "SW") advance_(25h);
    if (state == "SW") sweep();
  }

  void sweep() {
    for (;;) {
      const auto swept = service_.sweep();
      must(swept.has_value(), "sweep: " + testing::describe(swept));
      if (swept->abandoned + swept->expired == 0) return;
    }
  }

  // What no cell may break: hash, versions and fences of a record that was written.
  void check_rules(const Scene& made, const std::optional<Record>& after,
                   const std::string& column) const {
    if (!after || !made.before || *after == *made.before) return;
    EXPECT_GT(after->version, made.before->version) << made.state << " x " << column;
    if (after->fence != made.before->fence) {
      EXPECT_EQ(after->fence, after->version) << made.state << " x " << column;
    }
    if (made.state[0] != 'X') {
      EXPECT_EQ(after->request_hash, made.before->request_hash) << made.state << " x " << column;
    }
  }

  std::string store_;
  bool exact_;
  IdempotencyService& service_;
  IdempotencyStore& raw_store_;
  std::function<void(Duration)> advance_;
  std::uint64_t cells_ = 0;
  int next_ = 0;
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
void own_cells(Stage& stage, std::string_view state, const std::string& column,
               std::string_view expected, const LeaseVerb& verb) {
  for (const Mine who : kMine) {
    stage.cell(state, column + (who == Mine::lease ? " own" : " own, adopted"), expected,
               [&](Scene& scene) {
                 Lease lease = lease_of(scene, who);
                 return verb(lease);
               });
  }
}

void wrong_cells(Stage& stage, std::string_view state, const std::string& column,
                 std::string_view expected, const LeaseVerb& verb) {
  constexpr const char* kNames[] = {" stranger", " previous", " own owner, old fence",
                                    " old incarnation"};
  for (const NotMine who : kNotMine) {
    stage.cell(state, column + kNames[static_cast<int>(who)], expected, [&](Scene& scene) {
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
    stage.cell(state, name + " own", own,
               [&](Scene& s) { return claim(s, s.mine->token().owner, kBody); });
    stage.cell(state, name + " other", other,
               [&](Scene& s) { return claim(s, std::nullopt, kBody); });
    stage.cell(state, name + " previous", other,
               [&](Scene& s) { return claim(s, s.previous->token().owner, kBody); });
    stage.cell(state, name + " old incarnation", other,
               [&](Scene& s) { return claim(s, s.old->token().owner, kBody); });
    stage.cell(state, name + " own, other hash", mismatch,
               [&](Scene& s) { return claim(s, s.mine->token().owner, "another"); });
    stage.cell(state, name + " other, other hash", mismatch,
               [&](Scene& s) { return claim(s, std::nullopt, "another"); });
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
      stage.cell(state, "wait " + std::to_string(i), row[i],
                 [&](Scene& s) { return wait(s, patches[i], i == 5 ? "another" : kBody); });
    }
  }
}

TEST_P(DecisionTable, Complete) {
  IDEM_STAGE();
  const auto complete = [&](std::string_view payload) {
    return [this, payload](Lease& lease) { return word(service().complete(lease, payload)); };
  };
  for (const std::string_view state : table::kStates) {
    const auto& [same, other, lost] = cells(table::kComplete, state);
    own_cells(stage, state, "complete first", same, complete(kFirst));
    own_cells(stage, state, "complete second", other, complete("second"));
    wrong_cells(stage, state, "complete first", lost, complete(kFirst));
    wrong_cells(stage, state, "complete second", lost, complete("second"));
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
    own_cells(stage, state, "fail retryable", retryable, fail(FailKind::retryable, 0s));
    own_cells(stage, state, "fail later", later, fail(FailKind::retryable, 50s));
    own_cells(stage, state, "fail final", final, fail(FailKind::final, 0s));
    wrong_cells(stage, state, "fail retryable", lost, fail(FailKind::retryable, 0s));
    wrong_cells(stage, state, "fail final", lost, fail(FailKind::final, 0s));
  }
}

TEST_P(DecisionTable, RenewAndRelease) {
  IDEM_STAGE();
  const LeaseVerb renew = [&](Lease& lease) { return word(service().renew(lease)); };
  const LeaseVerb release = [&](Lease& lease) { return word(service().release(lease)); };
  for (const std::string_view state : table::kStates) {
    const auto& [renewed, renew_lost] = cells(table::kRenew, state);
    own_cells(stage, state, "renew", renewed, renew);
    wrong_cells(stage, state, "renew", renew_lost, renew);
    const auto& [released, release_lost] = cells(table::kRelease, state);
    own_cells(stage, state, "release", released, release);
    wrong_cells(stage, state, "release", release_lost, release);
  }
}

TEST_P(DecisionTable, GetAndSweep) {
  IDEM_STAGE();
  for (const std::string_view state : table::kStates) {
    const auto& [got, swept] = cells(table::kLook, state);
    stage.cell(state, "get", got, [&](Scene& s) { return word(service().get(Key(s.key))); });
    stage.cell(state, "sweep", swept, [&](Scene&) -> std::string {
      for (;;) {
        const auto step = service().sweep(7);
        if (step.has_error()) return testing::describe(step);
        if (step->abandoned + step->expired == 0) return "swept";
      }
    });
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
      stage.cell(state, kNames[i], row[i],
                 [&](Scene& s) { return verbs[i](Key(s.key), s.mine->fence()); });
      stage.cell(state, std::string(kNames[i]) + ", previous fence", row[4],
                 [&](Scene& s) { return verbs[i](Key(s.key), s.previous->fence()); });
      stage.cell(state, std::string(kNames[i]) + ", fence + 1", row[4],
                 [&](Scene& s) { return verbs[i](Key(s.key), s.mine->fence() + 1); });
    }
  }
}

}  // namespace
}  // namespace idem::conformance
