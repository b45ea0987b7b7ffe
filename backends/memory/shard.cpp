#include "shard.hpp"

#include <algorithm>
#include <cstdlib>
#include <limits>
#include <new>

#include "answers.hpp"
#include "idem/pause_point.hpp"

namespace idem::memory {
namespace {

[[nodiscard]] std::uint64_t micros_of(Time at) {
  return static_cast<std::uint64_t>(std::max<std::int64_t>(1, at.time_since_epoch().count()));
}

template <class T>
void raise(std::atomic<T>& to, T value) {
  T seen = to.load();
  while (seen < value && !to.compare_exchange_weak(seen, value)) {
  }
}

constexpr auto kNoMatch = [](const Cell&, std::uint32_t) { return false; };

}  // namespace

Shard::Shard(const Options& options)
    : birth_(options.birth),
      capacity_(*options.capacity),
      slab_(options.chunks_max),
      buckets_(options.buckets) {}

Shard::~Shard() = default;

// --- walking ---------------------------------------------------------------------------------

// The one walk of all writers (Michael's, 2002): from `start` to the first record of order
// first..last that matches, unlinking every flagged record it passes.
template <class Match>
Shard::Place Shard::locate(std::atomic<std::uint64_t>& start, std::uint32_t first,
                           std::uint32_t last, Match&& match) {
  for (;;) {
    std::atomic<std::uint64_t>* word = &start;
    Link seen(word->load());
    Place run;  // where records of order `first` begin
    for (bool again = false; !again;) {
      const Link at = seen.plain();
      if (run.word == nullptr && at.order() >= first) run = {word, seen, nullptr, {}};
      if (at.is_end() || at.order() > last) {
        if (run.word == nullptr) run = {word, seen, nullptr, {}};
        return run;
      }
      if (at.is_marker()) {
        word = &buckets_.word(at.bucket());
        seen = Link(word->load());
        continue;
      }
      Cell& cell = slab_.cell(at.number());
      const Link next(cell.next.load());
      if (next.flagged()) {
        std::uint64_t expected = seen.bits();
        again = !word->compare_exchange_strong(expected, next.plain().bits());
        if (again) continue;
        IDEM_PAUSE_POINT("memory.unlink.passed");
        slab_.retire(at.number());
        seen = next.plain();
        if (run.word == word) run.seen = seen;
        continue;
      }
      if (at.order() >= first && match(cell, at.number())) return {word, seen, &cell, next};
      word = &cell.next;
      seen = next;
    }
  }
}

template <class Match>
Shard::Place Shard::locate(std::uint32_t first, std::uint32_t last, Match&& match) {
  return locate(buckets_.start(reverse_bits(first) & (buckets_.size() - 1)), first, last,
                std::forward<Match>(match));
}

Shard::Place Shard::locate_key(std::uint64_t hash, KeyRef key) {
  const std::uint32_t order = record_order(hash);
  return locate(order, order,
                [&](const Cell& cell, std::uint32_t) { return cell.hash == hash && cell.is(key); });
}

// The readers' walk: it passes flagged records and writes nothing.
const Cell* Shard::find(std::uint64_t hash, KeyRef key) const {
  const std::uint32_t order = record_order(hash);
  const auto bucket = static_cast<std::uint32_t>(hash) & (buckets_.size() - 1);
  Link at = Link(buckets_.start(bucket).load()).plain();
  while (!at.is_end() && at.order() <= order) {
    if (at.is_marker()) {
      at = Link(buckets_.word(at.bucket()).load()).plain();
      continue;
    }
    const Cell& cell = slab_.cell(at.number());
    const Link next(cell.next.load());
    if (at.order() == order && !next.flagged() && cell.hash == hash && cell.is(key)) return &cell;
    at = next.plain();
  }
  return nullptr;
}

void Shard::prefetch(std::uint64_t hash) const {
  __builtin_prefetch(&buckets_.word(static_cast<std::uint32_t>(hash) & (buckets_.size() - 1)));
}

bool Shard::next_run(std::uint32_t from, std::vector<const Cell*>& run) {
  run.clear();
  std::uint32_t order = 0;
  Link at = Link(buckets_.start(reverse_bits(from) & (buckets_.size() - 1)).load()).plain();
  while (!at.is_end() && (run.empty() || at.order() == order)) {
    if (at.is_marker()) {
      at = Link(buckets_.word(at.bucket()).load()).plain();
      continue;
    }
    Cell& cell = slab_.cell(at.number());
    const Link next(cell.next.load());
    if (at.order() >= from && !next.flagged()) {
      order = at.order();
      static_cast<void>(settle(cell));  // so that its version can be read
      run.push_back(&cell);
    }
    at = next.plain();
  }
  return !run.empty();
}

// --- cells -----------------------------------------------------------------------------------

std::uint32_t Shard::class_of(KeyRef key, std::size_t result_bytes) {
  const std::size_t name = key.tenant.size() + key.biz_type.size() + key.key.size();
  const std::uint32_t whole = class_for(name + result_bytes);
  return whole != 0 ? whole : class_for(name);
}

std::int64_t Shard::bytes_of(KeyRef key, std::size_t result_bytes) {
  const std::size_t name = key.tenant.size() + key.biz_type.size() + key.key.size();
  const bool outside = class_for(name + result_bytes) == 0;
  return static_cast<std::int64_t>(class_bytes(class_of(key, result_bytes)) +
                                   (outside ? result_bytes : 0));
}

Shard::Made Shard::make(std::uint64_t hash, KeyRef key, const Draft& draft, Time now) {
  const std::uint32_t size_class = class_of(key, draft.result.size());
  const std::size_t name = key.tenant.size() + key.biz_type.size() + key.key.size();
  char* outside = nullptr;
  if (class_for(name + draft.result.size()) == 0) {
    outside = static_cast<char*>(std::malloc(draft.result.size()));
    if (outside == nullptr) return {};
  }
  const std::uint32_t number = slab_.allocate(size_class);
  if (number == 0) {
    std::free(outside);
    return {};
  }
  Cell& cell = *new (&slab_.cell(number)) Cell{};
  cell.hash = hash;
  cell.fence = draft.fence;
  cell.attempt = draft.attempt;
  cell.status = draft.status;
  cell.fail_kind = draft.fail_kind;
  cell.tombstone = draft.tombstone;
  cell.tenant_bytes = static_cast<std::uint8_t>(key.tenant.size());
  cell.biz_type_bytes = static_cast<std::uint8_t>(key.biz_type.size());
  cell.key_bytes = static_cast<std::uint8_t>(key.key.size());
  cell.size_class = static_cast<std::uint8_t>(size_class);
  cell.result_bytes = static_cast<std::uint32_t>(draft.result.size());
  if (draft.status == Status::processing) cell.until_after = draft.lease;
  if (draft.status == Status::failed) cell.until_after = draft.retry_after;
  cell.keep = draft.keep;
  cell.fresh = true;
  cell.made_at = now;
  cell.written_at.store(Cell::kUnsettled, std::memory_order_relaxed);
  cell.outside = outside;
  slab_.count_outside(static_cast<std::int64_t>(cell.outside_bytes()));
  cell.request_hash = draft.request_hash;
  cell.owner = draft.owner;
  char* to = cell.text();
  for (const std::string_view part : {key.tenant, key.biz_type, key.key})
    to = std::copy(part.begin(), part.end(), to);
  std::copy(draft.result.begin(), draft.result.end(), outside != nullptr ? outside : to);
  slab_.set_due(number, size_class, Due::code(later(now, draft.keep), birth_), record_order(hash));
  return {number, &cell};
}

// Gives back what was made and reserved, but not linked.
void Shard::discard(const Made& made, std::int64_t entries, std::int64_t bytes) {
  if (made.cell == nullptr) return;
  capacity_.give_back(entries, bytes);
  slab_.retire(made.number);
}

// --- the verbs -------------------------------------------------------------------------------

Shard::Done Shard::insert(std::uint64_t hash, Insert& op, Moment& moment) {
  const auto bucket = static_cast<std::uint32_t>(hash) & (buckets_.size() - 1);
  if (buckets_.word(bucket).load() == 0) link_bucket(bucket);
  const std::int64_t bytes = bytes_of(op.key, op.draft.result.size());
  Made made;
  for (;;) {
    const Place place = locate_key(hash, op.key);
    if (place.cell != nullptr) {
      discard(made, 1, bytes);
      const std::uint64_t version = settle(*place.cell);
      answer_stands(op.answer, *place.cell, version, moment.not_before(place.cell->updated()));
      return Done::answered;
    }
    IDEM_PAUSE_POINT("memory.insert.absent");
    const Time now = absent_at(moment);
    if (made.cell != nullptr && made.cell->made_at < now) {
      discard(made, 1, bytes);  // the key came and went since it was made: it would be too old
      made = {};
    }
    if (made.cell == nullptr) {
      if (!capacity_.reserve(1, bytes)) return Done::full;
      made = make(hash, op.key, op.draft, now);
      if (made.cell == nullptr) capacity_.give_back(1, bytes);
      if (made.cell == nullptr || !copy(op.answer.held.result, op.draft.result)) {
        discard(made, 1, bytes);
        answer_no_memory(op.answer);
        return Done::answered;
      }
    }
    made.cell->next.store(place.seen.plain().bits(), std::memory_order_relaxed);  // by the CAS
    std::uint64_t expected = place.seen.bits();
    if (place.word->compare_exchange_strong(
            expected, Link::to_record(record_order(hash), made.number).bits()))
      break;
  }
  IDEM_PAUSE_POINT("memory.insert.linked");
  const std::uint64_t version = settle(*made.cell);
  answer_written(op.answer, *made.cell, version, made.cell->updated());
  records_.fetch_add(1, std::memory_order_relaxed);  // a gauge
  grow_if_crowded();
  return Done::answered;
}

Shard::Done Shard::replace(std::uint64_t hash, Replace& op, Moment& moment) {
  const std::int64_t bytes = bytes_of(op.key, op.draft.result.size());
  std::int64_t more = 0;  // than the old record takes
  Made made;
  for (;;) {
    const Place place = locate_key(hash, op.key);
    if (place.cell == nullptr) {
      discard(made, 0, more);
      answer_absent(op.answer, absent_at(moment));
      return Done::answered;
    }
    Cell& old = *place.cell;
    const std::uint64_t version = settle(old);
    const Time now = moment.not_before(old.updated());
    if (version != op.expected || (now >= old.expires_at() && !op.draft.fresh)) {
      discard(made, 0, more);
      answer_stands(op.answer, old, version, now);
      return Done::answered;
    }
    IDEM_PAUSE_POINT("memory.replace.found");
    // A version belongs to one record only: found again after a failed CAS, it is the same `old`.
    if (made.cell == nullptr) {
      more = bytes - static_cast<std::int64_t>(old.bytes());
      if (!capacity_.reserve(0, more)) return Done::full;
      made = make(hash, op.key, op.draft, now);
      if (made.cell == nullptr) capacity_.give_back(0, more);
      if (made.cell == nullptr || !copy(op.answer.held.result, op.draft.result)) {
        discard(made, 0, more);
        answer_no_memory(op.answer);
        return Done::answered;
      }
      made.cell->fresh = op.draft.fresh;
      made.cell->made_at = op.draft.fresh ? now : old.created();
      // relaxed: published by the CAS
      made.cell->written_at.store(now.time_since_epoch().count(), std::memory_order_relaxed);
      made.cell->version.store(std::max({version + 1, micros_of(now), op.draft.fence}),
                               std::memory_order_relaxed);
    }
    made.cell->next.store(place.next.bits(), std::memory_order_relaxed);  // published by the CAS
    const Link link = Link::to_record(record_order(hash), made.number);
    std::uint64_t expected = place.next.bits();
    if (!old.next.compare_exchange_strong(expected, link.with_flag().bits())) continue;
    IDEM_PAUSE_POINT("memory.replace.swapped");
    answer_written(op.answer, *made.cell, settle(*made.cell), made.cell->updated());
    unlink(place, place.seen.number(), link, hash);
    return Done::changed;
  }
}

Shard::Done Shard::remove(std::uint64_t hash, Remove& op, Moment& moment) {
  for (;;) {
    const Place place = locate_key(hash, op.key);
    if (place.cell == nullptr) {
      answer_absent(op.answer, absent_at(moment));
      return Done::answered;
    }
    const std::uint64_t version = settle(*place.cell);
    const Time now = moment.not_before(place.cell->updated());
    if (version != op.expected) {
      answer_stands(op.answer, *place.cell, version, now);
      return Done::answered;
    }
    if (!flag_removed(place, version, now)) continue;
    IDEM_PAUSE_POINT("memory.remove.flagged");
    op.answer.now = now;
    op.answer.state = Answer::State::written;
    unlink(place, place.seen.number(), place.next, hash);
    return Done::changed;
  }
}

void Shard::load(std::uint64_t hash, Load& op, Moment& moment) {
  const Cell* const cell = find(hash, op.key);
  IDEM_PAUSE_POINT("memory.load.found");
  if (cell == nullptr) return answer_absent(op.answer, absent_at(moment));
  // A reader writes only here, and only to a record whose insert has not returned yet.
  const std::uint64_t version = settle(const_cast<Cell&>(*cell));
  answer_stands(op.answer, *cell, version, moment.not_before(cell->updated()));
}

// --- steps -----------------------------------------------------------------------------------

std::uint64_t Shard::settle(Cell& cell) {
  const std::uint64_t known = cell.version.load();
  if (known != 0) return known;
  // Each word is set once, by whoever comes first; the version last.
  const std::int64_t made = cell.made_at.time_since_epoch().count();
  std::int64_t written = Cell::kUnsettled;
  cell.written_at.compare_exchange_strong(written, std::max(made, removed_at_.load()));
  IDEM_PAUSE_POINT("memory.insert.settle");
  std::uint64_t version = 0;
  const std::uint64_t numbered =
      std::max({floor_.load() + 1, micros_of(cell.updated()), cell.fence});
  return cell.version.compare_exchange_strong(version, numbered) ? numbered : version;
}

// Makes the record no longer current. False: another thread changed something first.
bool Shard::flag_removed(const Place& place, std::uint64_t version, Time now) {
  raise(floor_, version);
  raise(removed_at_, now.time_since_epoch().count());
  IDEM_PAUSE_POINT("memory.remove.floor");
  std::uint64_t expected = place.next.bits();
  if (!place.cell->next.compare_exchange_strong(expected, place.next.with_flag().bits()))
    return false;
  capacity_.give_back(1, static_cast<std::int64_t>(place.cell->bytes()));
  records_.fetch_sub(1, std::memory_order_relaxed);  // a gauge
  return true;
}

// Takes a flagged record out of the list, and sees to it that somebody did.
void Shard::unlink(const Place& place, std::uint32_t number, Link to, std::uint64_t hash) {
  std::uint64_t expected = place.seen.bits();
  if (place.word->compare_exchange_strong(expected, to.bits())) {
    IDEM_PAUSE_POINT("memory.unlink.won");
    slab_.retire(number);
    return;
  }
  const std::uint32_t order = record_order(hash);
  static_cast<void>(locate(order, order, kNoMatch));
}

// --- growing ---------------------------------------------------------------------------------

void Shard::grow_if_crowded() {
  const std::uint32_t size = buckets_.size();
  const std::int64_t crowded = std::int64_t{size} / 4 * 3;
  if (records_.load(std::memory_order_relaxed) > crowded) buckets_.grow(size);
  for (int step = 0; step < 2; ++step) {
    const std::uint32_t bucket = buckets_.next_to_link();
    if (bucket == 0) return;
    link_bucket(bucket);
  }
}

// Links the bucket's marker, unless another thread is at it, or was.
void Shard::link_bucket(std::uint32_t bucket) {
  std::atomic<std::uint64_t>& mine = buckets_.word(bucket);
  std::uint64_t unused = 0;
  if (!mine.compare_exchange_strong(unused, Link::kFlag)) return;
  IDEM_PAUSE_POINT("memory.grow.bucket");
  const std::uint32_t order = marker_order(bucket);
  const std::uint32_t parent = bucket & ~std::bit_floor(bucket);
  for (;;) {
    const Place place = locate(buckets_.start(parent), order, order, kNoMatch);
    // Nobody else writes the word before the marker is linked.
    mine.store(place.seen.plain().with_flag().bits());
    std::uint64_t expected = place.seen.bits();
    if (place.word->compare_exchange_strong(expected, Link::to_marker(bucket).bits())) break;
  }
  IDEM_PAUSE_POINT("memory.grow.linked");
  // Now it may be started at. A writer that passed may have said so already.
  std::uint64_t seen = mine.load();
  while (Link(seen).flagged() && !mine.compare_exchange_weak(seen, Link(seen).plain().bits())) {
  }
}

// --- expiry ----------------------------------------------------------------------------------

Slab::Found Shard::evict_one(std::uint32_t number, const Due& due, Time now) {
  const Place place = locate(due.order_first(), due.order_last(),
                             [&](const Cell&, std::uint32_t at) { return at == number; });
  if (place.cell == nullptr) return Slab::Found::kept;  // not linked yet, or not any more
  const std::uint64_t version = settle(*place.cell);
  if (now < place.cell->expires_at()) return Slab::Found::kept;
  IDEM_PAUSE_POINT("memory.evict.expired");
  // The flag goes onto this very record: one that replaced it has another `next`.
  if (!flag_removed(place, version, now)) return Slab::Found::kept;
  IDEM_PAUSE_POINT("memory.evict.flagged");
  unlink(place, number, place.next, place.cell->hash);
  return Slab::Found::removed;
}

std::size_t Shard::evict(Time now, std::size_t limit) {
  const std::uint64_t when = Due::code(now, birth_);
  std::size_t removed = 0;
  const std::uint32_t chunks = slab_.chunks();
  for (std::uint32_t chunk = 0; chunk < chunks && removed < limit; ++chunk) {
    slab_.sweep_chunk(
        chunk, when,
        [&](std::uint32_t number, const Due& due) {
          const Slab::Found found = evict_one(number, due, now);
          removed += found == Slab::Found::removed ? 1 : 0;
          return found;
        },
        [&] { return removed >= limit; });
  }
  return removed;
}

std::size_t Shard::keep_house(Time now) {
  if (slab_.wants_reclaim()) slab_.reclaim(64);
  const std::uint32_t chunks = slab_.chunks();
  if (chunks == 0) return 0;
  const std::uint64_t when = Due::code(now, birth_);
  // relaxed, and not one step: two threads looking at the same chunk is no harm
  const std::uint32_t cursor = house_cursor_.load(std::memory_order_relaxed);
  house_cursor_.store(cursor + 2, std::memory_order_relaxed);
  int tries = 0;
  std::size_t removed = 0;
  for (std::uint32_t i = 0; i < std::min(chunks, 2U); ++i) {
    slab_.sweep_chunk((cursor + i) % chunks, when,
                      [&](std::uint32_t number, const Due& due) {
                        ++tries;
                        const Slab::Found found = evict_one(number, due, now);
                        removed += found == Slab::Found::removed ? 1 : 0;
                        return found;
                      },
                      [&] { return tries >= 4; });
  }
  return removed;
}

std::uint64_t Shard::records() const {
  return static_cast<std::uint64_t>(std::max<std::int64_t>(0, records_.load()));
}

std::uint64_t Shard::bytes() const { return slab_.resident_bytes() + buckets_.bytes(); }

}  // namespace idem::memory
