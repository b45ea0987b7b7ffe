#include "transfer/copy.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <optional>
#include <utility>

#include "idem/clock.hpp"
#include "idem/state_machine.hpp"

namespace idem::cli {

namespace {

constexpr std::size_t kToldMax = 10;
constexpr Micros kTimesDiffer = std::chrono::seconds(1);
constexpr int kTries = 5;  // of a write that may or may not have been applied

// A record's lengths of time, as of `now` of its store; what is over is over.
struct Left {
  Micros lease{};
  Micros retry{};
  Micros keep{};
};

Left left_of(const Record& record, Time now) {
  const auto until = [&](Time time) { return std::max(Micros(0), time - now); };
  Left left;
  if (record.status == Status::processing) left.lease = until(record.lease_until);
  if (record.status == Status::failed) left.retry = until(record.retry_at);
  left.keep = until(record.expires_at);
  // What was claimed under `hold` stays so: its expiry lies that far beyond its lease, run out or
  // not.
  if (claimed_under_hold(record)) left.keep = left.lease + kDurationMax;
  return left;
}

// The source's time by now.
Time now_at_source(const Portion& portion) {
  return portion.now + (system_clock().now() - portion.read_at);
}

std::string name_of(const Key& key) {
  std::string name = "'" + key.key + "'";
  if (!key.biz_type.empty()) name += " biz '" + key.biz_type + "'";
  if (!key.tenant.empty()) name += " tenant '" + key.tenant + "'";
  return name;
}

bool near(Micros a, Micros b) { return a - b <= kTimesDiffer && b - a <= kTimesDiffer; }

// The first thing that differs; "" if nothing does.
std::string difference(const Record& source, Time source_now, const Record& target,
                       Time target_now) {
  if (source.request_hash != target.request_hash) return "another request hash";
  if (source.status != target.status)
    return fmt::format("{} instead of {}", to_string(target.status), to_string(source.status));
  if (source.fail_kind != target.fail_kind) return "another kind of failure";
  if (source.owner != target.owner) return "another owner";
  if (source.fence != target.fence)
    return fmt::format("fence {} instead of {}", target.fence, source.fence);
  if (source.attempt != target.attempt)
    return fmt::format("attempt {} instead of {}", target.attempt, source.attempt);
  if (source.tombstone != target.tombstone || source.result != target.result)
    return "another result";
  const Left a = left_of(source, source_now);
  const Left b = left_of(target, target_now);
  if (!near(a.lease, b.lease)) return "another lease";
  if (!near(a.retry, b.retry)) return "another time to retry";
  if (!near(a.keep, b.keep)) return "another expiry";
  return {};
}

Draft draft_of(const Record& record, Time now) {
  const Left left = left_of(record, now);
  Draft draft;
  draft.request_hash = record.request_hash;
  draft.owner = record.owner;
  draft.fence = record.fence;
  draft.attempt = record.attempt;
  draft.status = record.status;
  draft.fail_kind = record.fail_kind;
  draft.tombstone = record.tombstone;
  draft.lease = left.lease;
  draft.retry_after = left.retry;
  draft.keep = left.keep;
  draft.result = record.result;
  return draft;
}

void tell(std::vector<std::string>& into, const Key& key, const std::string& what) {
  if (into.size() < kToldMax) into.push_back(name_of(key) + ": " + what);
}

[[noreturn]] void failed(const Key& key, const Error& error, const std::string& to) {
  throw Failure(fail(error.code, name_of(key) + ": " + error.message)).from(to);
}

// Puts one record in the place of one that is over; true if it stands there now.
bool replace_expired(IdempotencyStore& target, const std::string& to, const Insert& refused,
                     Answer& answer) {
  Replace op{refused.key, refused.answer.held.version, refused.draft, {}};
  target.replace({&op, 1});
  if (op.answer.state == Answer::State::failed) failed(Key(op.key), op.answer.error, to);
  answer = op.answer;
  return op.answer.state == Answer::State::written;
}

// How many records to ask for next: what the last ones' size lets expect for a portion.
std::size_t next_limit(std::size_t limit, const std::vector<Listed>& items) {
  std::size_t bytes = 0;
  for (const Listed& item : items) bytes += item.record.result.size();
  const std::size_t each = bytes / std::max<std::size_t>(items.size(), 1) + 1;
  return std::clamp<std::size_t>(kPortionBytes / each, 1, std::min(4 * limit, kPortionRecords));
}

// Inserts all of `ops`; a write that may have been applied is repeated with the same owner.
void insert_surely(IdempotencyStore& target, std::vector<Insert>& ops) {
  target.insert(ops);
  for (Insert& op : ops) {
    for (int i = 1; i < kTries && op.answer.state == Answer::State::failed &&
                    op.answer.error.code == errc::unknown;
         ++i)
      target.insert({&op, 1});
  }
}

}  // namespace

void each_portion(IdempotencyStore& store, const std::string& from,
                  const std::function<void(Portion&&)>& each) {
  ListQuery query;
  query.limit = 8;  // until the size of the records is known
  do {
    Page page = must(store.list(query), from);
    // After, not before: the first page of a Redis store waits for a walk over all names, and its
    // time is that of the records behind it.
    const Time read_at = system_clock().now();
    query.cursor = std::move(page.cursor);
    query.limit = next_limit(query.limit, page.items);
    std::vector<Listed> part;
    std::size_t bytes = 0;
    for (Listed& item : page.items) {
      bytes += item.record.result.size();
      part.push_back(std::move(item));
      if (bytes < kPortionBytes) continue;
      each({std::exchange(part, {}), page.now, read_at});
      bytes = 0;
    }
    if (!part.empty()) each({std::move(part), page.now, read_at});
  } while (!query.cursor.empty());
}

void copy_into(IdempotencyStore& target, const std::string& to, const Portion& portion,
               Copied& copied) {
  const Time now = now_at_source(portion);
  std::vector<Insert> ops;
  std::vector<const Listed*> sources;
  for (const Listed& item : portion.items) {
    if (item.record.expired(now)) {
      ++copied.expired;
      continue;
    }
    ops.push_back({item.key, draft_of(item.record, now), {}});
    sources.push_back(&item);
  }
  insert_surely(target, ops);
  for (std::size_t i = 0; i < ops.size(); ++i) {
    Answer& answer = ops[i].answer;
    const Listed& source = *sources[i];
    if (answer.state == Answer::State::failed) failed(source.key, answer.error, to);
    const bool over = answer.state == Answer::State::stands && answer.held.expired(answer.now);
    if (answer.state == Answer::State::written ||
        (over && replace_expired(target, to, ops[i], answer))) {
      ++copied.written;
      continue;
    }
    const std::string differs =
        difference(source.record, now_at_source(portion), answer.held, answer.now);
    if (differs.empty()) {
      ++copied.already;
    } else {
      ++copied.refused;
      tell(copied.refusals, source.key, "another record stands there: " + differs);
    }
  }
}

void compare_with(IdempotencyStore& target, const std::string& to, const Portion& portion,
                  Compared& compared) {
  std::vector<Load> ops;
  ops.reserve(portion.items.size());
  for (const Listed& item : portion.items) ops.push_back({item.key, {}});
  target.load(ops);
  const Time now = now_at_source(portion);
  for (std::size_t i = 0; i < ops.size(); ++i) {
    const Listed& source = portion.items[i];
    const Answer& answer = ops[i].answer;
    if (answer.state == Answer::State::failed) failed(source.key, answer.error, to);
    if (source.record.expired(now)) continue;
    ++compared.all;
    const bool there = answer.state == Answer::State::stands && !answer.held.expired(answer.now);
    const std::string differs =
        there ? difference(source.record, now, answer.held, answer.now) : "is missing";
    if (differs.empty()) {
      ++compared.equal;
    } else {
      tell(compared.differences, source.key, differs);
    }
  }
}

}  // namespace idem::cli
