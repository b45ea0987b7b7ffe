#include "work.hpp"

namespace idem::mysql {
namespace {

// So many records, or so many bytes of results, go out in one transaction.
constexpr std::size_t kOpsMax = 256;
constexpr std::size_t kBytesMax = std::size_t{8} << 20;

struct Round {
  std::vector<Replace*> ops;  // of different keys, sorted by key: no two batches deadlock
  std::vector<Replace*> later;
};

// The first operation of each key; the rest waits for the next round.
Round next_round(std::span<Replace* const> ops) {
  std::vector<Replace*> sorted(ops.begin(), ops.end());
  std::stable_sort(sorted.begin(), sorted.end(),
                   [](const Replace* a, const Replace* b) { return a->key < b->key; });
  Round round;
  std::size_t bytes = 0;
  const Replace* before = nullptr;
  for (Replace* op : sorted) {
    const bool same = before != nullptr && before->key == op->key;
    const bool full = round.ops.size() >= kOpsMax ||
                      (!round.ops.empty() && bytes + op->draft.result.size() > kBytesMax);
    before = op;
    if (same || full) {
      round.later.push_back(op);
      continue;
    }
    bytes += op->draft.result.size();
    round.ops.push_back(op);
  }
  return round;
}

// The record as it was read back inside the transaction; the result is the caller's own.
bool take_written(Exchange& exchange, std::size_t first, std::size_t count, const Replace& op,
                  std::uint64_t version, Answer& answer) {
  for (std::size_t i = 0; i < count; ++i) {
    for (const auto row : exchange.results(first + i).rows()) {
      const RowHead head = read_head(row);
      if (head.key != op.key) continue;
      if (!read_record(row, answer.held)) return false;
      if (answer.held.version != version || answer.held.owner != op.draft.owner) return false;
      answer.held.result.assign(op.draft.result);
      answer.state = Answer::State::written;
      answer.now = answer.held.update_time;
      return true;
    }
  }
  return false;
}

struct Places {
  std::size_t updates = 0;
  std::size_t reads = 0;
  std::size_t commit = 0;
};

Places compose(const Work& work, Exchange& exchange, std::span<Replace* const> ops,
               std::span<const Item> items) {
  Places places;
  exchange.add(kBegin);
  places.updates = exchange.size();
  for (const Replace* op : ops) {
    const DraftText text(op->draft);
    Fields fields;
    add_replace(fields, *op, text, work.time);
    exchange.add(Statement::replace, 0, fields);
  }
  places.reads = add_reads(work, exchange, items, Statement::load_head);
  places.commit = exchange.add(kCommit);
  return places;
}

// One transaction. What is to be run again comes back in `again`, what was not written in `stale`.
Fault run_round(const Work& work, std::span<Replace* const> ops, std::vector<Replace*>& again,
                std::vector<Item>& stale) {
  std::vector<Item> items;
  for (Replace* op : ops) items.push_back({op->key, &op->answer});
  Exchange exchange(work.session, work.budget);
  const Places places = compose(work, exchange, ops, items);
  if (Fault fault = exchange.run()) return fault;

  const Fault uncommitted = exchange.commit_fault(places.commit);
  Fault unread;
  for (std::size_t i = 0; i < read_count(items.size()); ++i) {
    if (Fault fault = exchange.fault(places.reads + i, "read back")) unread = std::move(fault);
  }
  const auto done = effects(work.session, exchange, places.updates, ops.size(), "replace");
  for (std::size_t i = 0; i < ops.size(); ++i) {
    Replace& op = *ops[i];
    if (done[i].took == Took::again) {
      again.push_back(&op);
    } else if (done[i].took == Took::no) {
      answer_failed(op.answer, done[i].fault.error);
    } else if (uncommitted) {
      answer_failed(op.answer, fail(errc::unknown, uncommitted.error.message));
    } else if (exchange.affected(places.updates + i) == 0) {
      stale.push_back(items[i]);
    } else if (unread ||
               !take_written(exchange, places.reads, read_count(items.size()), op,
                             exchange.results(places.updates + i).last_insert_id(), op.answer)) {
      answer_failed(op.answer, fail(errc::unknown, "replaced, but changed again at once"));
    }
  }
  return {};
}

}  // namespace

Fault replace(const Work& work, std::span<Replace* const> ops) {
  std::vector<Replace*> todo;
  for (Replace* op : ops) {
    if (fits(work, op->draft, op->answer)) todo.push_back(op);
  }
  int runs = 0;
  while (!todo.empty()) {
    Round round = next_round(todo);
    std::vector<Replace*> again;
    std::vector<Item> stale;
    if (Fault fault = run_round(work, round.ops, again, stale)) return fault;
    // None of those without an answer was written.
    if (const Fault fault = load_all(work, stale)) return not_applied(fault);
    runs = again.empty() ? 0 : runs + 1;
    if (runs >= kUnitRuns) {
      for (Replace* op : again) answer_failed(op->answer, fail(errc::busy, "replace: deadlocks"));
      again.clear();
      runs = 0;
    }
    todo = std::move(again);
    todo.insert(todo.end(), round.later.begin(), round.later.end());
  }
  return {};
}

}  // namespace idem::mysql
