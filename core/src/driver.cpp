#include "driver.hpp"

#include <algorithm>
#include <boost/container/small_vector.hpp>
#include <random>

namespace idem::detail {
namespace {

// Nearly every drive is one call; nothing is allocated for it.
template <class T>
using FewOf = boost::container::small_vector<T, 1>;

constexpr Micros kPauseMin{500};
constexpr Micros kPauseMax{100'000};
// So many writes may be overtaken before the clock is asked.
constexpr int kOvertakenUnseen = 8;

struct Pending {
  Call* call;
  Decision decision;
  Record held;  // what was decided upon, if `holds`
  bool holds = false;
  bool load = false;
  bool done = false;
  int overtaken = 0;      // writes that found another record than was decided upon
  bool doubtful = false;  // an `unknown` was seen: only a definite answer ends the doubt
  bool sticky = false;    // it was, at some time: of this call no error may say "not applied" again

  [[nodiscard]] const Record* seen() const {
    if (holds) return &held;
    return call->known;
  }
};

// After an `unknown`: whether the end of an attempt that was in doubt took, so that its repetition
// is answered as the first try would have been (a sweep counts what it did, an administrator is not
// told of a stale fence). Claims and renewals are decided anew: they resume, and the lease is whole
// again.
bool took_before(const Write& write, const Answer& answer) {
  if (answer.state == Answer::State::absent) return std::holds_alternative<WriteRemove>(write);
  const auto* replace = std::get_if<WriteReplace>(&write);
  if (replace == nullptr) return false;
  const Draft& draft = replace->draft;
  const Record& held = answer.held;
  return draft.status != Status::processing && held.status == draft.status &&
         !held.expired(answer.now) && held.version > replace->expected &&
         held.owner == draft.owner && held.fence == draft.fence &&
         held.fail_kind == draft.fail_kind && held.tombstone == draft.tombstone &&
         held.result == draft.result;
}

class Driver {
 public:
  Driver(IdempotencyStore& store, std::span<Call> calls, const DriveLimits& limits)
      : store_(store), limits_(limits) {
    pending_.reserve(calls.size());
    for (Call& call : calls) {
      Pending& one = pending_.emplace_back();
      one.call = &call;
      one.load = call.load_first;
      if (!one.load) decide(one, call.known, call.known_at);
    }
  }

  std::uint64_t run() {
    while (round()) {
    }
    return repeated_;
  }

 private:
  void decide(Pending& one, const Record* held, Time now) {
    one.decision = step(held, *one.call->command, now);
    if (std::holds_alternative<WriteNothing>(one.decision.write)) finish(one, now, false);
  }

  static void finish(Pending& one, Time now, bool wrote) {
    one.call->answer = std::move(one.decision.outcome);
    one.call->now = now;
    one.call->wrote = wrote;
    one.done = true;
  }

  // One batch of each kind of operation. False when every call is done.
  bool round() {
    FewOf<Insert> inserts;
    FewOf<Replace> replaces;
    FewOf<Load> loads;
    FewOf<Remove> removes;
    FewOf<Pending*> of_insert, of_replace, of_load, of_remove;
    for (Pending& one : pending_) {
      if (one.done) continue;
      const KeyRef key = one.call->key;
      if (one.load) {
        loads.push_back({key, {}});
        of_load.push_back(&one);
      } else if (const auto* insert = std::get_if<WriteInsert>(&one.decision.write)) {
        inserts.push_back({key, insert->draft, {}});
        of_insert.push_back(&one);
      } else if (const auto* replace = std::get_if<WriteReplace>(&one.decision.write)) {
        replaces.push_back({key, replace->expected, replace->draft, {}});
        of_replace.push_back(&one);
      } else if (const auto* remove = std::get_if<WriteRemove>(&one.decision.write)) {
        removes.push_back({key, remove->expected, {}});
        of_remove.push_back(&one);
      }
    }
    bool repeat_later = false;
    const auto perform = [&](auto& ops, auto& owners, auto method) {
      if (ops.empty()) return;
      (store_.*method)({ops.data(), ops.size()});
      for (std::size_t i = 0; i < ops.size(); ++i) {
        repeat_later = take(*owners[i], ops[i].answer) || repeat_later;
      }
    };
    perform(inserts, of_insert, &IdempotencyStore::insert);
    perform(replaces, of_replace, &IdempotencyStore::replace);
    perform(loads, of_load, &IdempotencyStore::load);
    perform(removes, of_remove, &IdempotencyStore::remove);
    if (repeat_later) pause();
    return std::any_of(pending_.begin(), pending_.end(), [](const Pending& p) { return !p.done; });
  }

  // Takes one answer in. True: repeat the same operation after a pause.
  bool take(Pending& one, Answer& answer) {
    switch (answer.state) {
      case Answer::State::failed:
        return take_failure(one, answer);
      case Answer::State::written:
        take_written(one, answer);
        return false;
      case Answer::State::stands:
      case Answer::State::absent:
        if (one.doubtful && took_before(one.decision.write, answer)) {
          take_written(one, answer);
          return false;
        }
        one.doubtful = false;
        one.load = false;
        one.call->known = nullptr;
        one.holds = answer.state == Answer::State::stands;
        if (one.holds) one.held = std::move(answer.held);
        decide(one, one.holds ? &one.held : nullptr, answer.now);
        if (!one.done && ++one.overtaken > kOvertakenUnseen) give_up_if_late(one);
        return false;
    }
    return false;
  }

  static void take_written(Pending& one, Answer& answer) {
    one.decision.outcome =
        settle(std::move(one.decision.outcome), one.seen(), answer.held, answer.now);
    one.call->written = std::move(answer.held);
    finish(one, answer.now, true);
  }

  // A record that is another one whenever a write comes to it.
  void give_up_if_late(Pending& one) {
    if (limits_.clock.now() < std::min(limits_.deadline, one.call->deadline)) return;
    one.call->answer = fail(one.sticky ? errc::unknown : errc::busy,
                            "the record changed before every write until the deadline");
    one.done = true;
  }

  bool take_failure(Pending& one, Answer& answer) {
    one.doubtful = one.doubtful || answer.error.code == errc::unknown;
    one.sticky = one.sticky || one.doubtful;
    // What failed now changed nothing, but an earlier write may have: the claim that a repetition
    // finds made, and could not renew, is the caller's.
    const Time deadline = std::min(limits_.deadline, one.call->deadline);
    if (one.sticky && limits_.clock.now() < deadline) {
      ++repeated_;
      return true;
    }
    if (one.sticky) answer.error.code = errc::unknown;
    one.call->answer = std::move(answer.error);
    one.done = true;
    return false;
  }

  void pause() {
    thread_local std::minstd_rand random(std::random_device{}());
    const Micros pause = std::min(kPauseMax, kPauseMin * (1 << std::min(pauses_++, 10)));
    const Micros jittered(
        std::uniform_int_distribution<std::int64_t>(pause.count() / 2, pause.count())(random));
    limits_.clock.pause(std::min(jittered, limits_.deadline - limits_.clock.now()));
  }

  IdempotencyStore& store_;
  const DriveLimits& limits_;
  FewOf<Pending> pending_;
  std::uint64_t repeated_ = 0;
  int pauses_ = 0;
};

}  // namespace

std::uint64_t drive(IdempotencyStore& store, std::span<Call> calls, const DriveLimits& limits) {
  return Driver(store, calls, limits).run();
}

}  // namespace idem::detail
