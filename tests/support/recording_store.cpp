#include "idem/testing/recording_store.hpp"

namespace idem::testing {

std::string_view to_string(Verb verb) noexcept {
  switch (verb) {
    case Verb::insert:
      return "insert";
    case Verb::replace:
      return "replace";
    case Verb::load:
      return "load";
    case Verb::remove:
      return "remove";
    case Verb::sweep:
      return "sweep";
    case Verb::list:
      return "list";
    case Verb::stats:
      return "stats";
  }
  return "?";
}

std::uint64_t RecordingStore::begin(Verb verb) {
  const std::lock_guard guard(mutex_);
  ++calls_by_verb_[static_cast<std::size_t>(verb)];
  return ++calls_;
}

void RecordingStore::note(RecordedItem item) {
  const std::lock_guard guard(mutex_);
  items_.push_back(std::move(item));
}

void RecordingStore::insert(std::span<Insert> ops) {
  const std::uint64_t call = begin(Verb::insert);
  behind().insert(ops);
  for (const Insert& op : ops) note({Verb::insert, call, Key(op.key), 0, op.answer});
}

void RecordingStore::replace(std::span<Replace> ops) {
  const std::uint64_t call = begin(Verb::replace);
  behind().replace(ops);
  for (const Replace& op : ops) note({Verb::replace, call, Key(op.key), op.expected, op.answer});
}

void RecordingStore::load(std::span<Load> ops) {
  const std::uint64_t call = begin(Verb::load);
  behind().load(ops);
  for (const Load& op : ops) note({Verb::load, call, Key(op.key), 0, op.answer});
}

void RecordingStore::remove(std::span<Remove> ops) {
  const std::uint64_t call = begin(Verb::remove);
  behind().remove(ops);
  for (const Remove& op : ops) note({Verb::remove, call, Key(op.key), op.expected, op.answer});
}

result<std::uint64_t> RecordingStore::sweep(std::size_t limit) {
  begin(Verb::sweep);
  return behind().sweep(limit);
}

result<Page> RecordingStore::list(const ListQuery& query) {
  begin(Verb::list);
  return behind().list(query);
}

result<StoreStats> RecordingStore::stats() {
  begin(Verb::stats);
  return behind().stats();
}

std::uint64_t RecordingStore::calls() const {
  const std::lock_guard guard(mutex_);
  return calls_;
}

std::uint64_t RecordingStore::calls(Verb verb) const {
  const std::lock_guard guard(mutex_);
  return calls_by_verb_[static_cast<std::size_t>(verb)];
}

std::vector<RecordedItem> RecordingStore::items() const {
  const std::lock_guard guard(mutex_);
  return items_;
}

void RecordingStore::clear() {
  const std::lock_guard guard(mutex_);
  calls_by_verb_.assign(calls_by_verb_.size(), 0);
  calls_ = 0;
  items_.clear();
}

}  // namespace idem::testing
