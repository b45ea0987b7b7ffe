// One shard of the store: an ordered lock-free list of records with buckets to start from.
//
// Layout. All records of the shard stand in one singly linked list, sorted by order (link.hpp),
// records of equal order in no particular order (a "run"). Bucket markers stand in the same list.
// A record is one cell of the slab; links are 64-bit words holding its number.
//
// Invariants
//   1 The `next` of a record is flagged once, and then never changes. An unflagged record that is
//     reachable is the current one of its key: there is at most one.
//   2 Orders never fall along the list.
//   3 A key's first record is linked in front of its run; a replacement stands where the replaced
//     record stood.
//   4 A record is unlinked only after it was flagged, by a CAS on the word that leads to it, which
//     must be unflagged: whose CAS takes, retires it. Once.
//   5 floor >= the version of every record that was removed (not: replaced), raised before it is
//     flagged. Likewise removed_at >= the store's time of every removal.
//
// Linearization points
//   insert    written: the CAS of the word before the run, from the link seen before the run was
//             searched to the new record. stands: the load of an unflagged `next` of that key.
//   replace   the CAS of the old record's `next`, from its successor to the flagged link to the new
//             record, whose own `next` is that successor. One step flags the one and links the
//             other: no reader finds neither, none finds both current.
//   remove    the CAS that flags `next`.       load    the load of `next`, unflagged; or absent.
//
// One winner. Two inserts of a key both need to CAS a word before the run of that order. Let B find
// the link w in word p, search the run from w on, find no current record of its key K, and CAS p
// from w to its own record. If the CAS takes, p is unflagged (so its owner is in the list) and
// holds w again or still. Records linked in front of the run meanwhile stood between p and w's
// target; they are gone, so they were flagged before: K has no current record among them. Behind
// w's target K had none when B searched; a later one could come there only as a replacement of a
// current record of K, which there was not. w's target itself is the same record, not another one
// with its number: it was reachable while B was pinned, so its number was not reused. Hence K has
// no current record when B's CAS takes.
//
// Versions and times. An inserted record takes version max(floor + 1, now, fence of its draft), and
// a time not before the key's last removal. Floor and removed_at must be read after every removal
// of the key that precedes the insert, hence after its CAS took: the record is linked unsettled,
// with lengths in place of times, and whoever needs it first settles it (settle). A removal before
// that CAS had raised both before. A replacement takes max(old + 1, now, fence): the old version
// and time belong to the very record whose `next` its CAS changes.
//
// Reclamation. Everybody is pinned (epoch.hpp) while holding a reference. A flagged record that is
// unlinked was reachable only through the word that was CASed (those before it that are flagged
// were unlinked earlier, by invariant 4), so new pins do not find it.
//
// Progress. Every retry follows another thread's successful CAS. A bucket being linked is nobody's
// obstacle: its words are read through, and walks start at its ancestor. No word is a lock.
// Readers never write.
//
// Cost. A claim of a new key: the bucket's line, and its own cell. A replay: bucket's line, cell.
// Load factor at most 3/4, so 3 of 8 walks pass another record.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "buckets.hpp"
#include "capacity.hpp"
#include "cell.hpp"
#include "idem/clock.hpp"
#include "idem/store.hpp"
#include "slab.hpp"

namespace idem::memory {

// The store's time for one batch: read once, and again if a record turns out to be younger.
class Moment {
 public:
  explicit Moment(const Clock& clock) : clock_(clock), now_(clock.now()) {}
  [[nodiscard]] Time now() const { return now_; }
  [[nodiscard]] Time not_before(Time written) {
    if (now_ < written) now_ = clock_.now();
    return now_;
  }

 private:
  const Clock& clock_;
  Time now_;
};

class Shard {
 public:
  struct Options {
    std::uint32_t buckets = 64;  // to start with; a power of two
    std::uint32_t chunks_max = kChunksMax;
    Time birth{};  // of the store
    Capacity* capacity = nullptr;
  };
  enum class Done {
    answered,  // op.answer tells
    changed,   // written or removed: whoever watches the key must know
    full,      // nothing done: over the store's bounds. Free something and try again
  };

  explicit Shard(const Options& options);
  ~Shard();
  Shard(const Shard&) = delete;
  Shard& operator=(const Shard&) = delete;

  // All of these only while pinned.

  // Fetches the bucket's line ahead of the call that will need it.
  void prefetch(std::uint64_t hash) const;
  [[nodiscard]] Done insert(std::uint64_t hash, Insert& op, Moment& moment);
  [[nodiscard]] Done replace(std::uint64_t hash, Replace& op, Moment& moment);
  [[nodiscard]] Done remove(std::uint64_t hash, Remove& op, Moment& moment);
  void load(std::uint64_t hash, Load& op, Moment& moment);

  // Removes up to `limit` expired records, everywhere; how many.
  [[nodiscard]] std::size_t evict(Time now, std::size_t limit);
  // A writer's share of the housekeeping: a look at two chunks' bounds, at most four removals,
  // at most 64 cells freed. How many expired records went.
  std::size_t keep_house(Time now);
  void reclaim(std::size_t limit) { slab_.reclaim(limit); }

  // The current records of the first run at or after `from`; false: there is none.
  [[nodiscard]] bool next_run(std::uint32_t from, std::vector<const Cell*>& run);
  // The version of a linked record.
  [[nodiscard]] std::uint64_t settle(Cell& cell);

  // Gauges; exact when nothing runs.
  [[nodiscard]] std::uint64_t records() const;
  [[nodiscard]] std::uint64_t bytes() const;  // of slab, results and index, limbo too
  [[nodiscard]] std::uint64_t limbo() const { return slab_.limbo_cells(); }

 private:
  // Where a walk ended.
  struct Place {
    std::atomic<std::uint64_t>* word = nullptr;  // what leads to the cell or, absent, to the run
    Link seen;                                   // what it held: the expected value of a CAS
    Cell* cell = nullptr;                        // what was looked for; nullptr: it is not there
    Link next;                                   // of the cell: unflagged
  };

  template <class Match>
  Place locate(std::atomic<std::uint64_t>& start, std::uint32_t first, std::uint32_t last,
               Match&& match);
  template <class Match>
  Place locate(std::uint32_t first, std::uint32_t last, Match&& match);
  Place locate_key(std::uint64_t hash, KeyRef key);
  [[nodiscard]] const Cell* find(std::uint64_t hash, KeyRef key) const;

  // A cell holding the draft, unlinked; 0: no memory.
  struct Made {
    std::uint32_t number = 0;
    Cell* cell = nullptr;
  };
  [[nodiscard]] static std::uint32_t class_of(KeyRef key, std::size_t result_bytes);
  [[nodiscard]] static std::int64_t bytes_of(KeyRef key, std::size_t result_bytes);
  [[nodiscard]] Made make(std::uint64_t hash, KeyRef key, const Draft& draft, Time now);
  void discard(const Made& made, std::int64_t entries, std::int64_t bytes);
  void unlink(const Place& place, std::uint32_t number, Link to, std::uint64_t hash);
  [[nodiscard]] bool flag_removed(const Place& place, std::uint64_t version, Time now);
  [[nodiscard]] Slab::Found evict_one(std::uint32_t number, const Due& due, Time now);
  void link_bucket(std::uint32_t bucket);
  void grow_if_crowded();
  // The time of an answer that found nothing: not before the removal that may be the reason.
  [[nodiscard]] Time absent_at(Moment& moment) const {
    return moment.not_before(Time(Micros(removed_at_.load())));
  }

  const Time birth_;
  Capacity& capacity_;
  Slab slab_;
  Buckets buckets_;
  alignas(64) std::atomic<std::int64_t> records_{0};
  std::atomic<std::uint32_t> house_cursor_{0};
  // Removals raise them, before the record is flagged; inserts read them.
  alignas(64) std::atomic<std::uint64_t> floor_{0};
  std::atomic<std::int64_t> removed_at_{0};  // µs: the latest removal's time
};

}  // namespace idem::memory
