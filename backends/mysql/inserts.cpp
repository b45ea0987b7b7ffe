// Inserts: as few statements as possible, and no doubt about who wrote a row.
//
// Plain multi-row INSERTs: one that succeeds wrote all its rows, one that fails wrote none, and
// only error 1062 means "there is such a record". (INSERT IGNORE would hide other failures,
// affected rows depend on the client's flags, ON DUPLICATE KEY UPDATE upsets auto-increment in
// MySQL.)
//
// One transaction with its answer: whoever wrote a record is told so, however soon another takes it
// over. Versions: the values of a row are computed before its statement waits for the row, and
// clocks step back. So each statement is followed by one that lifts what it wrote above the floor,
// if a record with a larger version may have been removed meanwhile; nobody sees it before.
#include "work.hpp"

namespace idem::mysql {
namespace {

constexpr std::size_t kOpsMax = 256;                     // in one exchange
constexpr std::size_t kBytesMax = std::size_t{4} << 20;  // of results in one statement
constexpr std::size_t kStatementsPerChunk = 2;           // insert, raise_fence
// Above it, records are looked for before they are inserted.
constexpr std::uint32_t kReadFirstPermille = 400;

using Ops = std::vector<Insert*>;

void note(Shared& shared, bool duplicate) {
  // A moving average over about 64 claims; racing updates may lose some, which is harmless.
  const std::uint32_t old = shared.duplicates_permille.load(std::memory_order_relaxed);
  const std::uint32_t next = duplicate ? old + (1000 - old) / 64 + (old < 1000 ? 1 : 0)
                                       : old - old / 64 - (old > 0 ? 1 : 0);
  shared.duplicates_permille.store(std::min<std::uint32_t>(next, 1000), std::memory_order_relaxed);
}

struct Chunk {
  std::size_t from = 0;
  std::size_t count = 0;
};

// Not too many rows and bytes each, and either all are claims or none is: see
// Statement::raise_fence. `single`: one row each.
std::vector<Chunk> chunks_of(const Ops& ops, bool single) {
  std::vector<Chunk> chunks;
  for (std::size_t at = 0; at < ops.size();) {
    std::size_t count = std::min(ops.size() - at, single ? std::size_t{1} : kRowsMax);
    std::size_t bytes = 0;
    for (std::size_t i = 0; i < count; ++i) {
      bytes += ops[at + i]->draft.result.size();
      const bool alike = (ops[at]->draft.fence == 0) == (ops[at + i]->draft.fence == 0);
      if (i > 0 && (bytes > kBytesMax || !alike)) count = i;
    }
    chunks.push_back({at, count});
    at += count;
  }
  return chunks;
}

class Inserter {
 public:
  explicit Inserter(const Work& work) : work_(work) {}

  // `ops` are of different keys, sorted by key: no two batches deadlock.
  Fault run(Ops ops) {
    todo_ = std::move(ops);
    const std::uint32_t duplicates =
        work_.shared.duplicates_permille.load(std::memory_order_relaxed);
    if (duplicates > kReadFirstPermille) {
      if (const Fault fault = drop_standing()) return not_applied(fault);
    }
    for (int in_vain = 0; !todo_.empty() && in_vain < kUnitRuns;) {
      const std::size_t before = todo_.size();
      if (Fault fault = round()) return fault;
      in_vain = todo_.size() < before ? 0 : in_vain + 1;
    }
    for (Insert* op : todo_) answer_failed(op->answer, fail(errc::busy, "insert: deadlocks"));
    return {};
  }

 private:
  // Answers those that are there already.
  Fault drop_standing() {
    std::vector<Item> absent;
    if (Fault fault = load_standing(work_, items_of_todo(), absent)) return fault;
    for (const Item& item : absent) answer_later(*item.answer);
    drop_answered();
    return {};
  }

  std::vector<Item> items_of_todo() const {
    std::vector<Item> items;
    items.reserve(todo_.size());
    for (Insert* op : todo_) items.push_back({op->key, &op->answer});
    return items;
  }

  void drop_answered() {
    std::erase_if(todo_, [&](Insert* op) {
      if (unanswered(op->answer)) return false;
      if (op->answer.state == Answer::State::stands) note(work_.shared, true);
      return true;
    });
  }

  // Inserts and reads back, in one exchange.
  Fault round() {
    const std::size_t now_count = std::min(todo_.size(), kOpsMax);
    const Ops later(todo_.begin() + static_cast<std::ptrdiff_t>(now_count), todo_.end());
    todo_.resize(now_count);
    const auto chunks = chunks_of(todo_, single_);
    const auto items = items_of_todo();
    Exchange exchange(work_.session, work_.budget);
    exchange.add(kBegin);
    const std::size_t first = exchange.size();
    for (const Chunk& chunk : chunks) add_rows(exchange, chunk, items);
    const std::size_t reads = add_reads(work_, exchange, items, Statement::load);
    const std::size_t commit = exchange.add(kCommit);
    if (Fault fault = exchange.run()) return fault;

    const auto done =
        effects(work_.session, exchange, first, chunks.size() * kStatementsPerChunk, "insert");
    const Fault uncommitted = exchange.commit_fault(commit);
    for (std::size_t i = 0; i < read_count(items.size()); ++i) {
      if (exchange.fault(reads + i, "read back")) continue;  // its items have no row, see below
      for (const auto row : exchange.results(reads + i).rows()) take_row(row, items);
    }
    for (std::size_t i = 0; i < chunks.size(); ++i) {
      const Effect& raise = done[i * kStatementsPerChunk + 1];
      settle(chunks[i], done[i * kStatementsPerChunk], uncommitted ? uncommitted : raise.fault);
    }
    drop_answered();
    todo_.insert(todo_.end(), later.begin(), later.end());
    return {};
  }

  void add_rows(Exchange& exchange, const Chunk& chunk, std::span<const Item> items) const {
    std::vector<DraftText> texts;
    texts.reserve(chunk.count);
    Fields fields;
    fields.reserve(chunk.count * kInsertParameters);
    const std::uint64_t floor = work_.shared.floor.load(std::memory_order_relaxed);
    for (std::size_t i = 0; i < chunk.count; ++i) {
      const Insert& op = *todo_[chunk.from + i];
      texts.emplace_back(op.draft);
      add_insert(fields, op, texts.back(), work_.time, floor);
    }
    exchange.add(Statement::insert, chunk.count, fields);
    fields.clear();
    add_is_claim(fields, todo_[chunk.from]->draft);
    const std::size_t keys = add_keys(fields, items.subspan(chunk.from, chunk.count));
    exchange.add(Statement::raise_fence, keys, fields);
  }

  // Answers `stands` for the time being.
  void take_row(boost::mysql::row_view row, std::span<const Item> items) {
    const RowHead head = read_head(row);
    work_.shared.raise_floor(head.floor);
    for (const Item& item : mysql::items_of(items, head.key)) {
      if (auto read = read_record(row, item.answer->held); !read) {
        answer_failed(*item.answer, read.error());
        continue;
      }
      item.answer->state = Answer::State::stands;
      item.answer->now = head.now;
    }
  }

  // What the statement's end and the row that was read back say together. `doubt`: what it wrote
  // may not be there, or not with its final fence.
  void settle(const Chunk& chunk, const Effect& effect, const Fault& doubt) {
    const bool wrote = effect.took == Took::yes;
    const bool only_one = chunk.count == 1;
    for (std::size_t i = 0; i < chunk.count; ++i) {
      Insert& op = *todo_[chunk.from + i];
      Answer& answer = op.answer;
      const bool there = answer.state == Answer::State::stands;
      if (wrote && doubt) {
        answer_failed(answer, fail(errc::unknown, doubt.error.message));
      } else if (wrote && there && answer.held.owner == op.draft.owner) {
        answer.state = Answer::State::written;
        answer.now = answer.held.update_time;
        note(work_.shared, false);
      } else if (wrote && (there || unanswered(answer))) {
        answer_failed(answer, fail(errc::unknown, "inserted, but could not be read back"));
      } else if (!there && unanswered(answer) && effect.took == Took::no) {
        refuse(op, effect.fault, only_one);
      }
      // Else somebody's record stands, or the row is to be tried again.
    }
  }

  // The statement failed and there is no such record.
  void refuse(Insert& op, const Fault& fault, bool only_one) {
    const bool gone = fault.kind == Fault::Kind::duplicate;  // and removed meanwhile: try again
    if (!only_one) {
      single_ = single_ || !gone;  // one bad row harms no other
    } else if (!gone) {
      answer_failed(op.answer, fault.error);
    }
  }

  const Work& work_;
  Ops todo_;
  bool single_ = false;
};

}  // namespace

Fault insert(const Work& work, std::span<Insert* const> ops) {
  Ops sorted;
  for (Insert* op : ops) {
    if (fits(work, op->draft, op->answer)) sorted.push_back(op);
  }
  std::stable_sort(sorted.begin(), sorted.end(),
                   [](const Insert* a, const Insert* b) { return a->key < b->key; });
  Ops leaders;
  for (Insert* op : sorted) {
    if (leaders.empty() || leaders.back()->key != op->key) leaders.push_back(op);
  }
  const bool alone = leaders.size() == sorted.size();
  if (Fault fault = Inserter(work).run(leaders)) return fault;
  if (alone) return {};
  // A key that stands twice: the later ones find what the first one made or found.
  std::size_t leader = 0;
  for (Insert* op : sorted) {
    while (leaders[leader]->key != op->key) ++leader;
    if (leaders[leader] == op) continue;
    op->answer = leaders[leader]->answer;
    if (op->answer.state == Answer::State::written) op->answer.state = Answer::State::stands;
  }
  return {};
}

}  // namespace idem::mysql
