#include "idem/transition_guard.hpp"

#include <algorithm>
#include <charconv>

namespace idem {
namespace {

// `unknown` is repeated this often before the caller hears of it; other rounds are races, each of
// which somebody won.
constexpr int kUnknownTries = 3;

// A record's result is "<fence> <state>".
result<EntityState> state_of(const Record& record) {
  const std::string& text = record.result;
  EntityState state;
  const std::size_t blank = text.find(' ');
  const char* const end = text.data() + (blank == std::string::npos ? 0 : blank);
  const auto parsed = std::from_chars(text.data(), end, state.fence);
  if (blank == std::string::npos || parsed.ec != std::errc() || parsed.ptr != end) {
    return idem::fail(errc::corrupt, "the record of this entity is not a transition guard's state");
  }
  state.state = text.substr(blank + 1);
  return state;
}

// One transition under way.
struct Move {
  KeyRef key;
  const Transition* wanted = nullptr;
  std::string text;  // what `draft` borrows
  Draft draft;
  Answer seen;            // the last answer about this entity
  bool has_read = false;  // `seen` may be decided upon
  int unknown = 0;
  std::optional<result<TransitionOutcome>> outcome;
};

class Advance {
 public:
  Advance(IdempotencyStore& store, const TransitionGuard::Allowed& allowed,
          const TransitionOptions& options)
      : store_(store), allowed_(allowed), options_(options) {}

  std::vector<result<TransitionOutcome>> operator()(std::span<const Transition> items) {
    moves_.resize(items.size());
    for (std::size_t i = 0; i < items.size(); ++i) start(moves_[i], items[i]);
    while (round()) {
    }
    std::vector<result<TransitionOutcome>> outcomes;
    outcomes.reserve(moves_.size());
    for (Move& move : moves_) outcomes.push_back(std::move(*move.outcome));
    return outcomes;
  }

 private:
  void start(Move& move, const Transition& wanted) const {
    move.wanted = &wanted;
    move.key = {options_.tenant, options_.biz_type, wanted.entity};
    if (auto checked = check_key(move.key); !checked) move.outcome = checked.error();
    move.draft.owner = Owner::random();
    move.draft.status = Status::success;
    move.draft.keep = options_.keep;
  }

  // One step of the first pending move of each entity, in batches. False when all are done.
  bool round() {
    std::vector<Load> loads;
    std::vector<Insert> inserts;
    std::vector<Replace> replaces;
    std::vector<Move*> of_load, of_insert, of_replace;
    std::set<std::string_view> busy;
    for (Move& move : moves_) {
      if (move.outcome || !busy.insert(move.key.key).second) continue;
      if (!move.has_read) {
        loads.push_back({move.key, {}});
        of_load.push_back(&move);
      } else if (move.seen.state == Answer::State::absent) {
        inserts.push_back({move.key, move.draft, {}});
        of_insert.push_back(&move);
      } else {
        replaces.push_back({move.key, move.seen.held.version, move.draft, {}});
        of_replace.push_back(&move);
      }
    }
    perform(loads, of_load, &IdempotencyStore::load);
    perform(inserts, of_insert, &IdempotencyStore::insert);
    perform(replaces, of_replace, &IdempotencyStore::replace);
    return !busy.empty();
  }

  template <class Op>
  void perform(std::vector<Op>& ops, const std::vector<Move*>& moves,
               void (IdempotencyStore::*method)(std::span<Op>)) {
    if (ops.empty()) return;
    (store_.*method)(ops);
    for (std::size_t i = 0; i < ops.size(); ++i) take(*moves[i], std::move(ops[i].answer));
  }

  void take(Move& move, Answer answer) const {
    switch (answer.state) {
      case Answer::State::written:
        move.outcome = TransitionOutcome(Applied{});
        return;
      case Answer::State::failed:
        if (answer.error.code != errc::unknown || ++move.unknown == kUnknownTries) {
          move.outcome = std::move(answer.error);
        } else {
          move.has_read = false;  // see what became of it
        }
        return;
      case Answer::State::stands:
      case Answer::State::absent:
        move.seen = std::move(answer);
        move.has_read = true;
        judge(move);
        return;
    }
  }

  // Decides upon what stands: an outcome, or a draft to be written.
  void judge(Move& move) const {
    const Transition& wanted = *move.wanted;
    const bool stands =
        move.seen.state == Answer::State::stands && !move.seen.held.expired(move.seen.now);
    EntityState at{options_.initial, 0};
    if (stands) {
      // An earlier try of this very call took after all.
      if (move.seen.held.owner == move.draft.owner) {
        move.outcome = TransitionOutcome(Applied{});
        return;
      }
      auto read = state_of(move.seen.held);
      if (!read) {
        move.outcome = read.error();
        return;
      }
      at = std::move(*read);
    }
    const bool stale = wanted.fence != 0 && wanted.fence < at.fence;
    if (at.state == wanted.to) {
      move.outcome = TransitionOutcome(AlreadyThere{});
    } else if (stale || at.state != wanted.from ||
               !allowed_.contains({std::string(wanted.from), std::string(wanted.to)})) {
      move.outcome = TransitionOutcome(Refused{std::move(at.state), at.fence});
    } else {
      move.text = std::to_string(std::max(at.fence, wanted.fence)).append(" ").append(wanted.to);
      move.draft.result = move.text;
      move.draft.fresh = !stands;
      move.draft.fence = stands ? move.seen.held.fence : 0;
      move.draft.attempt = stands ? move.seen.held.attempt : 1;
    }
  }

  IdempotencyStore& store_;
  const TransitionGuard::Allowed& allowed_;
  const TransitionOptions& options_;
  std::vector<Move> moves_;
};

void require(bool holds, const char* what) {
  if (!holds) throw Exception(idem::fail(errc::invalid_argument, what));
}

bool is_state(std::string_view text) { return !text.empty() && text.size() <= kStateBytesMax; }

}  // namespace

TransitionGuard::TransitionGuard(StorePtr store, Allowed allowed, TransitionOptions options)
    : store_(std::move(store)), allowed_(std::move(allowed)), options_(std::move(options)) {
  require(!allowed_.empty(), "a transition guard allows at least one transition");
  require(is_state(options_.initial), "the initial state has 1 to 256 bytes");
  for (const auto& [from, to] : allowed_) {
    require(is_state(from) && is_state(to) && from != to,
            "a transition leads from one state of 1 to 256 bytes to another");
  }
  require(options_.keep.micros() > Micros(0) && options_.keep.micros() <= kDurationMax,
          "keep must be more than 0 and at most 100 years");
}

result<TransitionOutcome> TransitionGuard::advance(std::string_view entity, std::string_view from,
                                                   std::string_view to, std::uint64_t fence) {
  const Transition one{entity, from, to, fence};
  return std::move(advance_many({&one, 1}).front());
}

std::vector<result<TransitionOutcome>> TransitionGuard::advance_many(
    std::span<const Transition> items) {
  return Advance(*store_, allowed_, options_)(items);
}

result<EntityState> TransitionGuard::current(std::string_view entity) {
  const KeyRef key{options_.tenant, options_.biz_type, entity};
  if (auto checked = check_key(key); !checked) return checked.error();
  Load load{key, {}};
  store_->load({&load, 1});
  const Answer& answer = load.answer;
  if (answer.state == Answer::State::failed) return answer.error;
  if (answer.state != Answer::State::stands || answer.held.expired(answer.now)) {
    return EntityState{options_.initial, 0};
  }
  return state_of(answer.held);
}

}  // namespace idem
