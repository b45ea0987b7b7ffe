// Inserts: as few statements as possible, and no doubt about who wrote a row.
//
// Plain multi-row INSERTs: one that succeeds wrote all its rows, one that fails wrote none, and
// only error 1062 means "there is such a record". (INSERT IGNORE would hide other failures,
// affected rows depend on the client's flags, ON DUPLICATE KEY UPDATE upsets auto-increment in
// MySQL.) What was written need not be read back: its values are the draft's and the transaction's
// one time, which comes along. Only what refused an INSERT is read, once the transaction is over:
// it may have changed meanwhile, but whoever concludes from it writes on condition of its version.
//
// Versions: the time of a row is read before its statement waits for the row, and clocks step back.
// So the transaction commits only if all its versions are above the table's floor, as that is after
// the wait; else it is rolled back, and done again above the floor. Nobody sees it before.
#include <algorithm>
#include <bit>
#include <utility>

#include "work.hpp"

namespace idem::mysql {
namespace {

constexpr std::size_t kOpsMax = 256;                     // in one exchange
constexpr std::size_t kBytesMax = std::size_t{4} << 20;  // of results in one statement
// So many duplicates to be expected in a batch: it is looked for them before it is inserted.
constexpr std::uint64_t kReadFirstPermille = 500;

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

// The most rows of one statement: up to seven, or five, six, seven or eight eighths of a power of
// two, so that a connection prepares twenty statements and not one for every number, and a batch is
// two at most.
std::size_t rows_of_one(std::size_t count) {
  const std::size_t most = std::min(count, kRowsMax);
  const std::size_t step = std::max<std::size_t>(std::bit_floor(most) / 4, 1);
  return most / step * step;
}

// Not too many rows and bytes each. `single`: one row each.
std::vector<Chunk> chunks_of(const Ops& ops, bool single) {
  std::vector<Chunk> chunks;
  for (std::size_t at = 0; at < ops.size();) {
    std::size_t count = single ? 1 : rows_of_one(ops.size() - at);
    std::size_t bytes = 0;
    for (std::size_t i = 0; i < count; ++i) {
      bytes += ops[at + i]->draft.result.size();
      if (i > 0 && bytes > kBytesMax) count = rows_of_one(i);
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
    const std::uint64_t duplicates =
        work_.shared.duplicates_permille.load(std::memory_order_relaxed);
    if (duplicates * todo_.size() > kReadFirstPermille) {
      if (const Fault fault = drop_standing()) return not_applied(fault);
    }
    for (int in_vain = 0; !todo_.empty() && in_vain < kUnitRuns;) {
      const std::size_t before = todo_.size();
      if (Fault fault = round()) return fault;
      if (std::exchange(refused_, false)) {
        if (const Fault fault = drop_standing()) return not_applied(fault);
      }
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

  // One transaction, in one exchange.
  Fault round() {
    const std::size_t now_count = std::min(todo_.size(), kOpsMax);
    const Ops later(todo_.begin() + static_cast<std::ptrdiff_t>(now_count), todo_.end());
    todo_.resize(now_count);
    const auto chunks = chunks_of(todo_, single_);
    floor_ = work_.shared.floor.load(std::memory_order_relaxed);
    Exchange exchange(work_.session, work_.budget);
    exchange.add(begin_insert_text(work_.time.base, work_.time.scale, floor_));
    const std::size_t first = exchange.size();
    for (const Chunk& chunk : chunks) add_rows(exchange, chunk);
    const std::size_t check = exchange.add(floor_check_text(work_.table));
    exchange.add(kCommitIfAbove);
    if (Fault fault = exchange.run()) return fault;

    const auto done = effects(work_.session, exchange, first, chunks.size(), "insert");
    const Seal sealed = read_seal(exchange, check);
    for (std::size_t i = 0; i < chunks.size(); ++i) settle(chunks[i], done[i], sealed);
    drop_answered();
    todo_.insert(todo_.end(), later.begin(), later.end());
    return sealed.open ? reopen() : Fault{};
  }

  void add_rows(Exchange& exchange, const Chunk& chunk) const {
    const auto ops = std::span(todo_).subspan(chunk.from, chunk.count);
    const bool claims = std::all_of(ops.begin(), ops.end(),
                                    [](const Insert* op) { return is_plain_claim(op->draft); });
    std::vector<DraftText> texts;
    texts.reserve(chunk.count);
    Fields fields;
    fields.reserve(chunk.count * (claims ? kClaimParameters : kInsertParameters));
    for (const Insert* each : ops) {
      const Insert& op = *each;
      texts.emplace_back(op.draft);
      if (claims) {
        add_claim(fields, op, texts.back());
      } else {
        add_insert(fields, op, texts.back());
      }
    }
    exchange.add(claims ? Statement::insert_claims : Statement::insert, chunk.count, fields);
  }

  // How the transaction ended.
  struct Seal {
    Fault fault;        // it is not known
    bool open = false;  // it did not: the floor is too high
    Time now{};         // of all that was inserted
  };

  // `check`: the place of the floor's check; the commit's is behind it.
  Seal read_seal(Exchange& exchange, std::size_t check) {
    Seal seal;
    seal.fault = exchange.commit_fault(check);
    if (!seal.fault) seal.fault = exchange.commit_fault(check + 1);
    if (seal.fault) return seal;
    const auto rows = exchange.results(check).rows();
    seal.open = rows.empty() || signed_of(rows[0][0]) == 0;
    if (!rows.empty()) seal.now = Time{Micros(signed_of(rows[0][1]))};
    return seal;
  }

  // Rolls back, and learns the floor. A session that does not come that far is closed, and its
  // transaction with it.
  Fault reopen() {
    Exchange exchange(work_.session, work_.budget);
    exchange.add("ROLLBACK");
    const std::size_t commit = exchange.add(kCommit);
    Fields fields;
    add_time(fields, work_.time);
    const std::size_t clock = exchange.add(Statement::clock, 1, fields);
    Fault fault = exchange.run();
    if (!fault) fault = exchange.commit_fault(commit);
    if (!fault) fault = exchange.commit_fault(clock);
    if (fault) {
      work_.session.discard();
      return not_applied(std::move(fault));
    }
    const auto rows = exchange.results(clock).rows();
    if (rows.empty()) return not_applied(no_meta_row());
    work_.shared.raise_floor(unsigned_of(rows[0][1]));
    return {};
  }

  // What the statement's end and the transaction's end say together.
  void settle(const Chunk& chunk, const Effect& effect, const Seal& seal) {
    for (std::size_t i = 0; i < chunk.count; ++i) {
      Insert& op = *todo_[chunk.from + i];
      Answer& answer = op.answer;
      if (effect.took == Took::no) {
        refuse(op, effect.fault, chunk.count == 1);
      } else if (effect.took == Took::yes && seal.fault) {
        answer_failed(answer, fail(errc::unknown, seal.fault.error.message));
      } else if (effect.took == Took::yes && !seal.open) {
        const auto us = static_cast<std::uint64_t>(seal.now.time_since_epoch().count());
        record_of(op.draft, std::max({floor_ + 1, us, op.draft.fence}), seal.now, seal.now,
                  answer.held);
        answer.state = Answer::State::written;
        answer.now = seal.now;
        note(work_.shared, false);
      }
      // Else it is to be tried again.
    }
  }

  // The statement failed: a record may stand there, or one bad row refused its neighbours.
  void refuse(Insert& op, const Fault& fault, bool only_one) {
    if (fault.kind == Fault::Kind::duplicate) {
      refused_ = true;
    } else if (!only_one) {
      single_ = true;
    } else {
      answer_failed(op.answer, fault.error);
    }
  }

  const Work& work_;
  Ops todo_;
  std::uint64_t floor_ = 0;  // as this round knows it
  bool single_ = false;      // one bad row harms no other
  bool refused_ = false;     // by a record: it is to be read
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
