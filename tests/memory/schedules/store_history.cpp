#include "store_history.hpp"

#include <algorithm>
#include <optional>
#include <sstream>
#include <utility>

namespace idem::schedules {
namespace {

using State = Answer::State;
using Verb = Call::Verb;
using Calls = std::vector<std::unique_ptr<Call>>;

// What the contract says about one key.
struct Model {
  std::optional<Record> record;
  std::uint64_t highest = 0;  // version that ever was

  // The record as a write must have made it.
  [[nodiscard]] bool becomes(const Call& call, Time create_time) {
    const Record& told = call.answer.held;
    Record made;
    record_of(call.draft, told.version, told.update_time, create_time, made);
    if (made != told || told.version <= highest || call.answer.now < told.update_time) return false;
    if (record && told.update_time < record->update_time) return false;
    highest = told.version;
    record = made;
    return true;
  }
  [[nodiscard]] bool shows(const Answer& answer) const {
    return record && answer.held == *record && answer.now >= record->update_time;
  }

  // Makes the step, if it can have been this one.
  [[nodiscard]] bool apply(const Call& call) {
    const Answer& answer = call.answer;
    if (answer.state == State::absent) return call.verb != Verb::insert && !record;
    if (answer.state == State::failed)  // nothing was done, for want of room
      return call.verb != Verb::load && answer.error.code == errc::capacity;
    switch (call.verb) {
      case Verb::insert:
        if (answer.state == State::stands) return shows(answer);
        return !record && becomes(call, answer.held.update_time);
      case Verb::replace:
        return replace(call);
      case Verb::remove:
        if (!record || (record->version == call.expected) != (answer.state == State::written))
          return false;
        if (answer.state == State::stands) return shows(answer);
        record.reset();
        return true;
      case Verb::load:
        return answer.state == State::stands && shows(answer);
    }
    return false;
  }

 private:
  [[nodiscard]] bool replace(const Call& call) {
    const Answer& answer = call.answer;
    if (!record) return false;
    const bool wanted =
        record->version == call.expected && (call.draft.fresh || !record->expired(answer.now));
    if (answer.state == State::stands) return !wanted && shows(answer);
    if (!wanted) return false;
    return becomes(call, call.draft.fresh ? answer.held.update_time : record->create_time);
  }
};

// Wing and Gong's search, over one key's calls.
class Search {
 public:
  explicit Search(const Calls& calls) : calls_(calls), done_(calls.size(), false) {}

  // Depth at most twice the calls.
  bool step(const Model& model, std::size_t left) {  // NOLINT(misc-no-recursion)
    if (left == 0) return true;
    // Whoever returned before another was called comes before it.
    std::uint64_t first_return = ~std::uint64_t{0};
    Time latest{};
    for (std::size_t i = 0; i < calls_.size(); ++i)
      if (!done_[i]) first_return = std::min(first_return, calls_[i]->returned);
    for (std::size_t i = 0; i < calls_.size(); ++i) {
      if (done_[i] || calls_[i]->invoked > first_return) continue;
      latest = std::max(latest, calls_[i]->clock_returned);
      Model next = model;
      if (!next.apply(*calls_[i])) continue;
      done_[i] = true;
      if (step(next, left - 1)) return true;
      done_[i] = false;
    }
    // An expired record goes, whoever removes it.
    if (!model.record || !model.record->expired(latest)) return false;
    Model without = model;
    without.record.reset();
    return step(without, left);
  }

 private:
  const Calls& calls_;
  std::vector<bool> done_;
};

[[nodiscard]] std::string describe(const Record& record) {
  std::ostringstream text;
  text << "version " << record.version << " fence " << record.fence << " owner "
       << int{record.owner.bytes[0]} << " status " << int{static_cast<std::uint8_t>(record.status)}
       << " result '" << record.result.substr(0, 16) << "'";
  return text.str();
}

[[nodiscard]] std::string describe(const Call& call) {
  constexpr const char* kVerbs[] = {"insert", "replace", "remove", "load"};
  constexpr const char* kStates[] = {"written", "stands", "absent", "failed"};
  std::ostringstream text;
  text << "  [" << call.invoked << ".." << call.returned << "] "
       << kVerbs[static_cast<std::size_t>(call.verb)] << " owner " << int{call.draft.owner.bytes[0]}
       << " expected " << call.expected << " -> "
       << kStates[static_cast<std::size_t>(call.answer.state)] << " " << describe(call.answer.held)
       << "\n";
  return text.str();
}

}  // namespace

Call& StoreHistory::begin(std::string_view key, Verb verb) {
  auto found = calls_.find(key);
  if (found == calls_.end()) found = calls_.emplace(std::string(key), Calls()).first;
  Call& call = *found->second.emplace_back(std::make_unique<Call>());
  call.verb = verb;
  call.invoked = ++ticks_;
  call.returned = ~std::uint64_t{0};
  return call;
}

Answer StoreHistory::end(Call& call, Answer&& answer) {
  call.answer = std::move(answer);
  call.returned = ++ticks_;
  call.clock_returned = clock_.now();
  return call.answer;
}

Answer StoreHistory::insert(std::string_view key, const Draft& draft) {
  Call& call = begin(key, Verb::insert);
  call.draft = draft;
  call.result = draft.result;
  call.draft.result = call.result;
  Insert op{{{}, {}, key}, call.draft, {}};
  store_.insert({&op, 1});
  return end(call, std::move(op.answer));
}

Answer StoreHistory::replace(std::string_view key, std::uint64_t expected, const Draft& draft) {
  Call& call = begin(key, Verb::replace);
  call.draft = draft;
  call.result = draft.result;
  call.draft.result = call.result;
  call.expected = expected;
  Replace op{{{}, {}, key}, expected, call.draft, {}};
  store_.replace({&op, 1});
  return end(call, std::move(op.answer));
}

Answer StoreHistory::remove(std::string_view key, std::uint64_t expected) {
  Call& call = begin(key, Verb::remove);
  call.expected = expected;
  Remove op{{{}, {}, key}, expected, {}};
  store_.remove({&op, 1});
  return end(call, std::move(op.answer));
}

Answer StoreHistory::load(std::string_view key) {
  Call& call = begin(key, Verb::load);
  Load op{{{}, {}, key}, {}};
  store_.load({&op, 1});
  return end(call, std::move(op.answer));
}

std::string StoreHistory::violation() const {
  for (const auto& [key, calls] : calls_) {
    if (Search(calls).step(Model(), calls.size())) continue;
    std::string text = "no order of single steps explains key '" + key + "':\n";
    for (const auto& call : calls) text += describe(*call);
    return text;
  }
  return {};
}

std::uint64_t StoreHistory::count(Verb verb, State state) const {
  std::uint64_t sum = 0;
  for (const auto& [key, calls] : calls_)
    for (const auto& call : calls) sum += call->verb == verb && call->answer.state == state ? 1 : 0;
  return sum;
}

std::vector<std::string> StoreHistory::keys() const {
  std::vector<std::string> keys;
  for (const auto& [key, calls] : calls_) keys.push_back(key);
  return keys;
}

}  // namespace idem::schedules
