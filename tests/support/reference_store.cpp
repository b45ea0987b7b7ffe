#include "idem/testing/reference_store.hpp"

#include <algorithm>

#include "idem/list_filter.hpp"

namespace idem::testing {
namespace {

constexpr std::uint64_t kResultBytesMax = std::uint64_t{64} << 20;

bool refused(const Draft& draft, Answer& answer) {
  if (draft.result.size() <= kResultBytesMax) return false;
  answer.state = Answer::State::failed;
  answer.error = fail(errc::too_large, "the result is over 64 MiB");
  return true;
}

void set(Answer& answer, Answer::State state, Time now, const Record* held) {
  answer.state = state;
  answer.now = now;
  if (held != nullptr) answer.held = *held;
}

}  // namespace

ReferenceStore::ReferenceStore(Clock& clock) : clock_(clock) {
  capabilities_.backend = "reference";
  capabilities_.watches = true;
  capabilities_.result_bytes_max = kResultBytesMax;
}

std::uint64_t ReferenceStore::next_version(const Key& key, std::uint64_t fence, Time now) {
  std::uint64_t& last = versions_[key];
  last = std::max({last + 1, static_cast<std::uint64_t>(now.time_since_epoch().count()), fence});
  return last;
}

Record ReferenceStore::made(const Key& key, const Draft& draft, const Record* before, Time now) {
  Record record;
  record.request_hash = draft.request_hash;
  record.owner = draft.owner;
  record.version = next_version(key, draft.fence, now);
  record.fence = draft.fence != 0 ? draft.fence : record.version;
  record.attempt = draft.attempt;
  record.status = draft.status;
  record.fail_kind = draft.fail_kind;
  record.tombstone = draft.tombstone;
  if (draft.status == Status::processing) record.lease_until = now + draft.lease;
  if (draft.status == Status::failed) record.retry_at = now + draft.retry_after;
  record.create_time = draft.fresh || before == nullptr ? now : before->create_time;
  record.update_time = now;
  record.expires_at = now + draft.keep;
  record.result = draft.result;
  return record;
}

void ReferenceStore::take_watchers(const Key& key, Watchers& into) {
  const auto found = watchers_.find(key);
  if (found == watchers_.end()) return;
  std::move(found->second.begin(), found->second.end(), std::back_inserter(into));
  watchers_.erase(found);
}

void ReferenceStore::insert(std::span<Insert> ops) {
  const std::lock_guard guard(mutex_);
  const Time now = clock_.now();
  for (Insert& op : ops) {
    if (refused(op.draft, op.answer)) continue;
    const Key key(op.key);
    const auto found = records_.find(key);
    if (found != records_.end()) {
      set(op.answer, Answer::State::stands, now, &found->second);
    } else {
      set(op.answer, Answer::State::written, now,
          &(records_[key] = made(key, op.draft, nullptr, now)));
    }
  }
}

void ReferenceStore::replace(std::span<Replace> ops) {
  Watchers changed;
  {
    const std::lock_guard guard(mutex_);
    const Time now = clock_.now();
    for (Replace& op : ops) {
      if (refused(op.draft, op.answer)) continue;
      const Key key(op.key);
      const auto found = records_.find(key);
      if (found == records_.end()) {
        set(op.answer, Answer::State::absent, now, nullptr);
        continue;
      }
      Record& held = found->second;
      const bool dead = held.expired(now) && !op.draft.fresh;
      if (held.version != op.expected || dead) {
        set(op.answer, Answer::State::stands, now, &held);
        continue;
      }
      held = made(key, op.draft, &held, now);
      set(op.answer, Answer::State::written, now, &held);
      take_watchers(key, changed);
    }
  }
  for (const auto& call : changed) call();
}

void ReferenceStore::load(std::span<Load> ops) {
  const std::lock_guard guard(mutex_);
  const Time now = clock_.now();
  for (Load& op : ops) {
    const auto found = records_.find(Key(op.key));
    if (found == records_.end()) {
      set(op.answer, Answer::State::absent, now, nullptr);
    } else {
      set(op.answer, Answer::State::stands, now, &found->second);
    }
  }
}

void ReferenceStore::remove(std::span<Remove> ops) {
  Watchers changed;
  {
    const std::lock_guard guard(mutex_);
    const Time now = clock_.now();
    for (Remove& op : ops) {
      const Key key(op.key);
      const auto found = records_.find(key);
      if (found == records_.end()) {
        set(op.answer, Answer::State::absent, now, nullptr);
      } else if (found->second.version != op.expected) {
        set(op.answer, Answer::State::stands, now, &found->second);
      } else {
        records_.erase(found);
        set(op.answer, Answer::State::written, now, nullptr);
        take_watchers(key, changed);
      }
    }
  }
  for (const auto& call : changed) call();
}

result<std::uint64_t> ReferenceStore::sweep(std::size_t limit) {
  const std::lock_guard guard(mutex_);
  const Time now = clock_.now();
  std::uint64_t removed = 0;
  for (auto at = records_.begin(); at != records_.end() && removed < limit;) {
    if (at->second.expired(now)) {
      at = records_.erase(at);
      ++removed;
    } else {
      ++at;
    }
  }
  return removed;
}

result<Page> ReferenceStore::list(const ListQuery& query) {
  auto at = records_.begin();
  Key after;
  if (!query.cursor.empty()) {
    auto parsed = parse_storage_name(query.cursor);
    if (parsed.has_error()) return parsed.error();
    after = *parsed;
  }
  const std::lock_guard guard(mutex_);
  at = query.cursor.empty() ? records_.begin() : records_.upper_bound(after);
  Page page;
  page.now = clock_.now();
  for (; at != records_.end(); ++at) {
    if (!selects(query, at->first, at->second, page.now)) continue;
    if (page.items.size() == query.limit) {
      if (!page.items.empty()) page.cursor = storage_name(page.items.back().key);
      break;
    }
    page.items.push_back({at->first, at->second});
  }
  return page;
}

result<StoreStats> ReferenceStore::stats() {
  const std::lock_guard guard(mutex_);
  const Time now = clock_.now();
  StoreStats stats;
  for (const auto& [key, record] : records_) {
    if (record.status == Status::processing) ++stats.processing;
    if (record.status == Status::success) ++stats.success;
    if (record.status == Status::failed) ++stats.failed;
    if (record.expired(now)) ++stats.expired;
    stats.bytes += sizeof(key) + sizeof(record) + key.key.size() + record.result.size();
  }
  return stats;
}

bool ReferenceStore::watch(KeyRef key, std::function<void()> changed) {
  const std::lock_guard guard(mutex_);
  watchers_[Key(key)].push_back(std::move(changed));
  return true;
}

}  // namespace idem::testing
