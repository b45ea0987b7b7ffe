#include "idem/tiered_store.hpp"

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "circuit.hpp"
#include "envelope.hpp"

namespace idem {
namespace tiered {
namespace {

// The fence of a front marker that was set before the back was asked: lower than any real one.
constexpr std::uint64_t kFenceUnknown = 1;

// How much earlier than the back the front forgets a result: room for two clocks to drift apart.
Micros safety(Micros left) { return std::chrono::seconds(1) + left / 1000; }

// A record of the back as it is kept in the front.
struct Copy {
  Draft draft;
  std::string envelope;  // draft.result points here
};

// nullptr: not worth keeping there.
std::unique_ptr<Copy> copy_of(const Record& held, Time now) {
  auto copy = std::make_unique<Copy>();
  Draft& draft = copy->draft;
  draft.request_hash = held.request_hash;
  draft.owner = held.owner;
  draft.fence = held.fence;
  draft.attempt = held.attempt;
  draft.status = held.status;
  if (held.status == Status::failed || held.expired(now)) return nullptr;
  const Micros left = held.expires_at - now;
  if (held.status == Status::processing) {
    draft.lease = held.lease_until - now;
    draft.keep = std::min(draft.lease, left);
  } else {
    draft.keep = left - safety(left);
  }
  if (draft.keep <= Micros(0)) return nullptr;
  copy->envelope = pack(held, now);
  draft.result = copy->envelope;
  return copy;
}

// Turns the front's answer into the back's: its record, at its time as far as the front can tell
// (early by the time the copy took to get there). False: the front has a bare marker.
bool unwrap(Answer& answer) {
  auto envelope = unpack(answer.held.result);
  if (!envelope) return false;
  answer.now = envelope->back_now + (answer.now - answer.held.update_time);
  answer.held = std::move(envelope->record);
  return true;
}

class TieredStore final : public IdempotencyStore {
 public:
  explicit TieredStore(TieredOptions options)
      : front_(std::move(options.front)),
        back_(std::move(options.back)),
        clock_(options.clock != nullptr ? *options.clock : system_clock()),
        circuit_(clock_, options.circuit),
        capabilities_(back_->capabilities()) {
    capabilities_.backend =
        "tiered(" + front_->capabilities().backend + "+" + back_->capabilities().backend + ")";
  }

  void insert(std::span<Insert> ops) override {
    std::vector<Insert> marks = mark(ops);
    std::vector<Insert> asked;  // of the back
    std::vector<std::size_t> places;
    for (std::size_t i = 0; i < ops.size(); ++i) {
      if (!marks.empty() && answered_by_front(ops[i], marks[i])) {
        ops[i].answer = std::move(marks[i].answer);
        (void)unwrap(ops[i].answer);  // a bare marker stands for itself: who runs is all it tells
        continue;
      }
      asked.push_back({ops[i].key, ops[i].draft, {}});
      places.push_back(i);
    }
    if (asked.empty()) return;
    const Time before = clock_.now();
    back_->insert(asked);
    for (std::size_t j = 0; j < asked.size(); ++j) {
      const bool marked = !marks.empty() && marks[places[j]].answer.state == Answer::State::written;
      settle_mark(asked[j], marked ? &marks[places[j]].answer.held : nullptr, before);
      ops[places[j]].answer = std::move(asked[j].answer);
    }
  }

  void replace(std::span<Replace> ops) override {
    const Time before = clock_.now();
    back_->replace(ops);
    for (const Replace& op : ops) tell_front(op.key, op.answer, before);
  }

  // A reader wants the last word: only claims are answered by the front.
  void load(std::span<Load> ops) override { back_->load(ops); }

  void remove(std::span<Remove> ops) override {
    const Time before = clock_.now();
    back_->remove(ops);
    for (const Remove& op : ops) {
      if (op.answer.state == Answer::State::written) {
        forget(op.key);
      } else {
        tell_front(op.key, op.answer, before);
      }
    }
  }

  result<std::uint64_t> sweep(std::size_t limit) override {
    // What the front frees is a copy: only the back's count is told.
    if (circuit_.allows()) {
      if (auto swept = front_->sweep(limit); !swept) note_failure(swept.error());
    }
    return back_->sweep(limit);
  }

  result<Page> list(const ListQuery& query) override { return back_->list(query); }
  result<StoreStats> stats() override { return back_->stats(); }
  [[nodiscard]] const Capabilities& capabilities() const noexcept override { return capabilities_; }
  // Every write passes the back.
  bool watch(KeyRef key, std::function<void()> changed) override {
    return back_->watch(key, std::move(changed));
  }

 private:
  // Sets a marker of each claim in the front, while the circuit is whole; else empty. Only claims
  // are marked: a result is shown to nobody before the back has it.
  std::vector<Insert> mark(std::span<const Insert> ops) {
    std::vector<Insert> marks;
    const bool claims = std::all_of(ops.begin(), ops.end(), [](const Insert& op) {
      return op.draft.status == Status::processing;
    });
    if (!claims || !circuit_.allows()) return marks;
    marks.reserve(ops.size());
    for (const Insert& op : ops) {
      Insert& one = marks.emplace_back(Insert{op.key, op.draft, {}});
      one.draft.fence = kFenceUnknown;
      one.draft.keep = std::min(op.draft.lease, op.draft.keep);  // of use while the lease runs
    }
    front_->insert(marks);
    for (const Insert& one : marks) note(one.answer);
    return marks;
  }

  // The two cases in which the back is not asked: another attempt of the same request runs, or the
  // first result is known.
  [[nodiscard]] bool answered_by_front(const Insert& op, const Insert& marker) const {
    const Answer& answer = marker.answer;
    // What the front says succeeded but is no copy of the back's is for the back to judge.
    if (is_success(answer)) return unpack(answer.held.result).has_value();
    if (answer.state != Answer::State::stands) return false;
    const Record& held = answer.held;
    return held.status == Status::processing && answer.now < held.lease_until &&
           !held.expired(answer.now) && held.request_hash == op.draft.request_hash &&
           held.owner != op.draft.owner && circuit_.trusts(held.update_time);
  }

  [[nodiscard]] static bool is_success(const Answer& answer) {
    return answer.state == Answer::State::stands && answer.held.status == Status::success &&
           !answer.held.expired(answer.now);
  }

  // The back's time by now, at the latest: its answer was made after `before`. A copy that took
  // long to get to the front must not outlive what it copies.
  [[nodiscard]] Time aged(const Answer& answer, Time before) const {
    return answer.now + (clock_.now() - before);
  }

  // After the back answered an insert: the marker becomes the truth, or goes.
  void settle_mark(const Insert& asked, const Record* marker, Time before) {
    const Answer& answer = asked.answer;
    if (answer.state == Answer::State::failed) {
      // `unknown`: the claim may stand; its marker stays, it is the same owner's.
      if (marker != nullptr && answer.error.code != errc::unknown) drop(asked.key, *marker);
      return;
    }
    const auto copy = copy_of(answer.held, aged(answer, before));
    if (marker == nullptr) {
      tell_front(asked.key, answer, before);
    } else if (copy) {
      Replace op{asked.key, marker->version, copy->draft, {}};
      front_->replace({&op, 1});
      note(op.answer);
    } else {
      drop(asked.key, *marker);
    }
  }

  // The back holds `answer.held` now: what the front holds of an older attempt is replaced.
  void tell_front(KeyRef key, const Answer& answer, Time before) {
    if (answer.state == Answer::State::absent) return forget(key);
    if (answer.state == Answer::State::failed || !circuit_.allows()) return;
    const auto copy = copy_of(answer.held, aged(answer, before));
    if (!copy) return forget(key);
    Insert fresh{key, copy->draft, {}};
    front_->insert({&fresh, 1});
    note(fresh.answer);
    if (fresh.answer.state != Answer::State::stands) return;
    const Record& there = fresh.answer.held;
    // A copy of a later write of the back stays: its version says so. A bare marker goes.
    const auto known = unpack(there.result);
    if (known && known->record.version >= answer.held.version) return;
    Replace op{key, there.version, copy->draft, {}};
    front_->replace({&op, 1});
    note(op.answer);
  }

  // Removes what the front holds of this key, whatever it is: the back is asked next time.
  void forget(KeyRef key) {
    if (!circuit_.allows()) return;
    Load look{key, {}};
    front_->load({&look, 1});
    note(look.answer);
    if (look.answer.state == Answer::State::stands) drop(key, look.answer.held);
  }

  void drop(KeyRef key, const Record& there) {
    Remove op{key, there.version, {}};
    front_->remove({&op, 1});
    note(op.answer);
  }

  void note(const Answer& answer) {
    if (answer.state == Answer::State::failed) {
      note_failure(answer.error);
    } else {
      circuit_.worked(answer.now);
    }
  }

  void note_failure(const Error& error) {
    // A full front is no dead front: what does not fit is asked of the back.
    if (error.code == errc::capacity || error.code == errc::too_large) return;
    circuit_.broke();
  }

  StorePtr front_;
  StorePtr back_;
  Clock& clock_;
  Circuit circuit_;
  Capabilities capabilities_;
};

}  // namespace
}  // namespace tiered

result<StorePtr> make_tiered_store(TieredOptions options) {
  if (!options.front || !options.back) {
    return fail(errc::invalid_argument, "a tiered store needs a front and a back");
  }
  if (options.circuit.micros() <= Micros(0) ||
      options.circuit > Duration(std::chrono::seconds(2))) {
    return fail(errc::invalid_argument, "circuit must be more than 0 and at most 2s");
  }
  return StorePtr(std::make_shared<tiered::TieredStore>(std::move(options)));
}

}  // namespace idem
