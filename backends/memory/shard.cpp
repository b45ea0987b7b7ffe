#include "shard.hpp"

#include <algorithm>
#include <cstdlib>
#include <limits>
#include <new>

#include "answers.hpp"
#include "idem/pause_point.hpp"

namespace idem::memory {
namespace {

template <class T>
void raise(std::atomic<T>& to, T value) {
  T seen = to.load();
  while (seen < value && !to.compare_exchange_weak(seen, value)) {
  }
}

constexpr std::uint32_t kWordsPerLine = 8;
constexpr auto kNoMatch = [](const Cell&, std::uint32_t) { return false; };

}  // namespace

Shard::Shard(const Options& options)
    : birth_(options.birth),
      capacity_(*options.capacity),
      slab_(*options.slab),
      buckets_(options.buckets, options.index) {}

Shard::~Shard() = default;

// --- walking ---------------------------------------------------------------------------------

// The one walk of all writers (Michael's, 2002): from `start` to the first record of that place
// that matches, unlinking every flagged record it passes.
template <class Match>
[[gnu::always_inline]] inline Shard::Place Shard::locate(Buckets::Start start, std::uint32_t place,
                                                         Match&& match) {
  for (;; start.seen = Link(start.word->load())) {
    std::atomic<std::uint64_t>* word = start.word;
    Link seen = start.seen;
    Place run;  // where records of that place begin
    for (bool again = false; !again;) {
      const Link at = seen.plain();
      const bool here = at.place() == place && at.number() != 0;
      if (!here && !precedes(at.place(), place))
        return run.word != nullptr ? run : Place{word, seen, nullptr, {}};
      if (here && run.word == nullptr) run = {word, seen, nullptr, {}};
      if (at.is_marker()) {
        word = &buckets_.word(at.bucket());
        seen = Link(word->load());
        continue;
      }
      Cell& cell = slab_.cell(at.number());
      IDEM_PAUSE_POINT("memory.walk.record");
      const Link next(cell.next.load());
      if (next.flagged()) [[unlikely]] {
        std::uint64_t expected = seen.bits();
        again = !word->compare_exchange_strong(expected, next.plain().bits());
        if (again) continue;
        IDEM_PAUSE_POINT("memory.unlink.passed");
        slab_.retire(at.number());
        seen = next.plain();
        if (run.word == word) run.seen = seen;
        continue;
      }
      if (here && match(cell, at.number())) return {word, seen, &cell, next};
      word = &cell.next;
      seen = next;
    }
  }
}

[[gnu::always_inline]] inline Shard::Place Shard::locate_key(Buckets::Start start,
                                                             std::uint64_t hash,
                                                             const KeyRef& key) {
  return locate(start, record_place(hash),
                [&](const Cell& cell, std::uint32_t) { return cell.is(key); });
}

// An insert links its bucket, if nobody did.
[[gnu::always_inline]] inline Buckets::Start Shard::start_of_insert(std::uint64_t hash,
                                                                    Word& first) {
  const Link seen(first.load());
  if (seen.bits() != 0 && !seen.flagged()) [[likely]]
    return {&first, seen};
  const std::uint32_t bucket = buckets_.of(hash);
  if (seen.bits() == 0) link_bucket(bucket);
  return buckets_.start(bucket);
}

[[gnu::always_inline]] inline bool Shard::unlink(const Place& place, Link to, std::uint64_t hash) {
  std::uint64_t expected = place.seen.bits();
  const bool mine = place.word->compare_exchange_strong(expected, to.bits());
  if (mine) [[likely]]
    IDEM_PAUSE_POINT("memory.unlink.won");
  else
    find_unlinked(hash);
  return mine;
}

// Passes a flagged record, unless it has been unlinked.
void Shard::find_unlinked(std::uint64_t hash) {
  static_cast<void>(locate(buckets_.start(buckets_.of(hash)), record_place(hash), kNoMatch));
}

std::optional<std::uint32_t> Shard::next_run(std::uint32_t from, std::vector<const Cell*>& run) {
  run.clear();
  std::uint32_t order = 0;
  Link at = buckets_.start(buckets_.of(reverse_bits(from))).seen.plain();
  while (!at.is_end() && (run.empty() || reverse_bits(at.place()) == order)) {
    if (at.is_marker()) {
      at = Link(buckets_.word(at.bucket()).load()).plain();
      continue;
    }
    Cell& cell = slab_.cell(at.number());
    const Link next(cell.next.load());
    if (reverse_bits(at.place()) >= from && !next.flagged()) {
      order = reverse_bits(at.place());
      static_cast<void>(settled(cell));  // so that its version can be read
      run.push_back(&cell);
    }
    at = next.plain();
  }
  if (run.empty()) return std::nullopt;
  return order;
}

// --- cells -----------------------------------------------------------------------------------

[[gnu::always_inline]] inline Shard::Made Shard::make(const CellPlan& plan, const KeyRef& key,
                                                      const Draft& draft) {
  char* outside = nullptr;
  if (plan.outside_bytes != 0) [[unlikely]] {
    outside = static_cast<char*>(std::malloc(plan.outside_bytes));
    if (outside == nullptr) return {};
  }
  const std::uint32_t number = slab_.allocate(plan.size_class);
  if (number == 0) [[unlikely]] {
    std::free(outside);
    return {};
  }
  Cell& cell = make_cell(slab_.cell_at(number), plan, key, draft, outside);
  slab_.count_outside(plan.outside_bytes);
  slab_.set_due(number, plan.size_class, Due::code(later(plan.written, draft.keep), birth_));
  return {number, &cell};
}

// Gives back what was made and reserved, but not linked.
void Shard::discard(const Made& made, std::int64_t entries, std::int64_t bytes) {
  if (made.cell == nullptr) return;
  capacity_.give_back(entries, bytes);
  slab_.retire(made.number);
}

// --- the verbs -------------------------------------------------------------------------------

// What settle() does, by who made the record and knows what is in it.
[[gnu::always_inline]] inline std::uint64_t Shard::settle_made(Cell& cell, std::uint64_t version,
                                                               Time planned) noexcept {
  IDEM_PAUSE_POINT("memory.insert.settle");
  std::uint64_t known = version | Cell::kProvisional;
  const bool in_time =
      floor_.load() < version && removed_at_.load() <= planned.time_since_epoch().count();
  IDEM_PAUSE_POINT("memory.settle.decided");
  if (in_time && cell.version_word.compare_exchange_strong(known, version)) [[likely]]
    return version;
  return (known & Cell::kProvisional) == 0 ? known : settle(cell, known);
}

Shard::Done Shard::insert(Word& first, std::uint64_t hash, Insert& op, Moment& moment) {
  Made made;
  CellPlan plan;
  for (Buckets::Start start = start_of_insert(hash, first);; start = start_of_insert(hash, first)) {
    const Place place = locate_key(start, hash, op.key);
    if (place.cell != nullptr) {
      discard(made, 1, plan.bytes());
      answer_stands(op.answer, *place.cell, settled(*place.cell), moment);
      return Done::answered;
    }
    IDEM_PAUSE_POINT("memory.insert.absent");
    const Time now = absent_at(moment);
    if (made.cell != nullptr && plan.written < now) {
      discard(made, 1, plan.bytes());  // the key came and went since it was made: it is too old
      made = {};
    }
    if (made.cell == nullptr) {
      plan = CellPlan::of_insert(op.key, op.draft, now);
      if (capacity_.bounded() && !capacity_.reserve(1, plan.bytes())) return Done::full;
      made = make(plan, op.key, op.draft);
      if (made.cell == nullptr) capacity_.give_back(1, plan.bytes());
      if (made.cell == nullptr || !copy(op.answer.held.result, op.draft.result)) {
        discard(made, 1, plan.bytes());
        answer_no_memory(op.answer);
        return Done::answered;
      }
    }
    made.cell->next.store(place.seen.plain().bits(), std::memory_order_relaxed);  // by the CAS
    std::uint64_t expected = place.seen.bits();
    if (place.word->compare_exchange_strong(
            expected, Link::to_record(record_place(hash), made.number).bits()))
      break;
  }
  IDEM_PAUSE_POINT("memory.insert.linked");
  const std::uint64_t settled = settle_made(*made.cell, plan.version, plan.written);
  const Time written = settled == plan.version ? plan.written : made.cell->updated();
  answer_written(op.answer, op.draft, Cell::version_in(settled), written, written);
  return Done::answered;
}

Shard::Done Shard::replace(std::uint64_t hash, Replace& op, Moment& moment) {
  std::int64_t more = 0;  // than the old record takes
  Made made;
  CellPlan plan;
  for (;;) {
    const Place place = locate_key(buckets_.start(buckets_.of(hash)), hash, op.key);
    if (place.cell == nullptr) {
      discard(made, 0, more);
      answer_absent(op.answer, absent_at(moment));
      return Done::answered;
    }
    Cell& old = *place.cell;
    const std::uint64_t word = settled(old);
    const std::uint64_t version = Cell::version_in(word);
    const CellFields fields = old.fields();
    const Time since = (word & Cell::kWrittenLate) != 0 ? old.updated() : fields.written(version);
    const Time now = moment.not_before(since);
    if (version != op.expected || (now >= later(since, old.keep()) && !op.draft.fresh))
        [[unlikely]] {
      discard(made, 0, more);
      answer_stands(op.answer, old, word, moment);
      return Done::answered;
    }
    IDEM_PAUSE_POINT("memory.replace.found");
    // A version belongs to one record only: found again after a failed CAS, it is the same `old`.
    if (made.cell == nullptr) {
      plan = CellPlan::of_replace(op.key, op.draft, now,
                                  std::max({version + 1, micros_of(now), op.draft.fence}),
                                  fields.created(since, fields.fence(version)));
      if (capacity_.bounded()) {
        more = plan.bytes() - old.bytes();
        if (!capacity_.reserve(0, more)) return Done::full;
      }
      made = make(plan, op.key, op.draft);
      if (made.cell == nullptr) capacity_.give_back(0, more);
      if (made.cell == nullptr || !copy(op.answer.held.result, op.draft.result)) {
        discard(made, 0, more);
        answer_no_memory(op.answer);
        return Done::answered;
      }
    }
    made.cell->next.store(place.next.bits(), std::memory_order_relaxed);  // published by the CAS
    const Link link = Link::to_record(record_place(hash), made.number);
    std::uint64_t expected = place.next.bits();
    if (!old.next.compare_exchange_strong(expected, link.with_flag().bits())) continue;
    IDEM_PAUSE_POINT("memory.replace.swapped");
    answer_written(op.answer, op.draft, plan.version, plan.written,
                   op.draft.fresh ? plan.written : plan.created);
    if (unlink(place, link, hash)) slab_.retire(place.seen.number());
    return Done::changed;
  }
}

Shard::Done Shard::remove(std::uint64_t hash, Remove& op, Moment& moment) {
  for (;;) {
    const Place place = locate_key(buckets_.start(buckets_.of(hash)), hash, op.key);
    if (place.cell == nullptr) {
      answer_absent(op.answer, absent_at(moment));
      return Done::answered;
    }
    const std::uint64_t word = settled(*place.cell);
    const std::uint64_t version = Cell::version_in(word);
    const Time now = moment.not_before(place.cell->updated());
    if (version != op.expected) {
      answer_stands(op.answer, *place.cell, word, moment);
      return Done::answered;
    }
    if (!flag_removed(place, version, now)) continue;
    IDEM_PAUSE_POINT("memory.remove.flagged");
    op.answer.now = now;
    op.answer.state = Answer::State::written;
    if (unlink(place, place.next, hash)) slab_.retire(place.seen.number());
    return Done::changed;
  }
}

// --- steps -----------------------------------------------------------------------------------

std::uint64_t Shard::settle(Cell& cell, std::uint64_t known) noexcept {
  IDEM_PAUSE_POINT("memory.insert.settle");
  std::uint64_t settled = known & ~Cell::kProvisional;
  const std::int64_t planned = cell.planned().time_since_epoch().count();
  if (floor_.load() >= settled || removed_at_.load() > planned) {
    std::int64_t unset = Cell::kUnsettled;
    const std::int64_t wanted = std::max(planned, removed_at_.load());
    const std::int64_t written =
        cell.late().compare_exchange_strong(unset, wanted) ? wanted : unset;
    settled = std::max({floor_.load() + 1, micros_of(Time(Micros(written))), settled}) |
              Cell::kWrittenLate;
  }
  IDEM_PAUSE_POINT("memory.settle.decided");
  return cell.version_word.compare_exchange_strong(known, settled) ? settled : known;
}

// Makes the record no longer current. False: another thread changed something first.
bool Shard::flag_removed(const Place& place, std::uint64_t version, Time now) {
  if (version >= micros_of(now)) raise(floor_, version);  // else the time is enough
  raise(removed_at_, now.time_since_epoch().count());
  IDEM_PAUSE_POINT("memory.remove.floor");
  std::uint64_t expected = place.next.bits();
  if (!place.cell->next.compare_exchange_strong(expected, place.next.with_flag().bits()))
    return false;
  if (capacity_.bounded()) capacity_.give_back(1, place.cell->bytes());
  return true;
}

// --- growing ---------------------------------------------------------------------------------

Shard::Growth Shard::count(std::int64_t records) {
  // relaxed: a rule of thumb
  const std::int64_t now = records_.fetch_add(records, std::memory_order_relaxed) + records;
  std::uint32_t first = 0;
  // Twice if it is behind, since there was no memory for it, or another thread was faster; what
  // this thread does not link then is linked by the inserts that come there.
  for (int step = 0; step < 2 && records > 0 && now > std::int64_t{buckets_.count()}; ++step)
    if (const std::uint32_t grown = buckets_.grow(buckets_.count()); grown != 0) first = grown;
  if (first == 0) return {};
  for (std::uint32_t i = 0; i < Buckets::kStep; i += kWordsPerLine) {
    __builtin_prefetch(&buckets_.word(Buckets::parent(first) + i));
    __builtin_prefetch(&buckets_.word(first + i), 1);
  }
  return {this, first};
}

// Steps `from` to before `to` of a growth. Step i fetches the record that the walk to bucket i
// begins with, if it passes one, and what is behind that on the way to bucket i - 1, and links
// bucket i - 2; of several steps all of one kind first, so that their misses overlap.
void Shard::link_some(std::uint32_t first, std::uint32_t from, std::uint32_t to) {
  const auto way_to = [&](std::uint32_t i) {
    return link_in(buckets_.word(Buckets::parent(first + i)));
  };
  for (std::uint32_t i = from; i < to && i < Buckets::kStep; ++i) prefetch(way_to(i), first + i);
  for (std::uint32_t i = std::max(from, 1U) - 1; i + 1 < to && i < Buckets::kStep; ++i)
    prefetch_second(way_to(i), first + i);
  for (std::uint32_t i = std::max(from, 2U) - 2; i + 2 < to; ++i) link_bucket(first + i);
}

// Links the bucket's marker, unless another thread is at it, or was.
void Shard::link_bucket(std::uint32_t bucket) {
  std::atomic<std::uint64_t>& mine = buckets_.word(bucket);
  std::uint64_t unused = 0;
  if (!mine.compare_exchange_strong(unused, Link::kFlag)) return;
  IDEM_PAUSE_POINT("memory.grow.bucket");
  for (;;) {
    const Place place = locate(buckets_.start(Buckets::parent(bucket)), bucket, kNoMatch);
    // Nobody else writes the word before the marker is linked. relaxed: by the CAS
    mine.store(place.seen.plain().with_flag().bits(), std::memory_order_relaxed);
    IDEM_PAUSE_POINT("memory.grow.marker");
    std::uint64_t expected = place.seen.bits();
    if (place.word->compare_exchange_strong(expected, Link::to_marker(bucket).bits())) break;
  }
  IDEM_PAUSE_POINT("memory.grow.linked");
  // Now it may be started at. A writer that passed may have said so already.
  std::uint64_t seen = mine.load();
  IDEM_PAUSE_POINT("memory.grow.usable");
  while (Link(seen).flagged() && !mine.compare_exchange_weak(seen, Link(seen).plain().bits())) {
  }
}

// --- expiry ----------------------------------------------------------------------------------

Shard::Evicted Shard::evict(std::uint64_t hash, std::uint32_t number, Time now,
                            Slab::Chain& chain) {
  const Place place = locate(buckets_.start(buckets_.of(hash)), record_place(hash),
                             [&](const Cell&, std::uint32_t at) { return at == number; });
  if (place.cell == nullptr) return Evicted::not_there;  // or not yet
  const std::uint64_t version = Cell::version_in(settled(*place.cell));
  if (now < place.cell->expires_at()) return Evicted::not_yet;
  IDEM_PAUSE_POINT("memory.evict.expired");
  // The flag goes onto this very record: one that replaced it has another `next`.
  if (!flag_removed(place, version, now)) return Evicted::not_there;
  IDEM_PAUSE_POINT("memory.evict.flagged");
  if (unlink(place, place.next, hash)) slab_.retire_later(chain, number);
  return Evicted::yes;
}

}  // namespace idem::memory
