// One shard of the store: an ordered lock-free list of records with buckets to start from.
//
// Layout. All records of the shard stand in one singly linked list, sorted by place (link.hpp),
// records of equal place in no particular order (a "run"). Bucket markers stand in the same list.
// A record is one cell of the slab; links are 64-bit words holding its number.
//
// Invariants
//   1 The `next` of a record is flagged once, and then never changes. An unflagged record that is
//     reachable is the current one of its key: there is at most one.
//   2 Places never fall along the list.
//   3 A key's first record is linked in front of its run; a replacement stands where the replaced
//     record stood.
//   4 A record is unlinked only after it was flagged, by a CAS on the word that leads to it, which
//     must be unflagged: whose CAS takes, retires it. Once.
//   5 removed_at >= the store's time of every removal (not: replacement), and floor >= the version
//     of every record removed at an earlier time than its version tells; both raised before the
//     record is flagged.
//
// Linearization points
//   insert    written: the CAS of the word before the run, from the link seen before the run was
//             searched to the new record. stands: the load of an unflagged `next` of that key.
//   replace   the CAS of the old record's `next`, from its successor to the flagged link to the new
//             record, whose own `next` is that successor. One step flags the one and links the
//             other: no reader finds neither, none finds both current.
//   remove    the CAS that flags `next`.       load    the load of `next`, unflagged; or absent.
//
// One winner. Two inserts of a key both need to CAS a word before the run of that place. Let B find
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
// with a provisional version, and whoever needs it first settles it (settle). A removal before
// that CAS had raised both before. A replacement takes max(old + 1, now, fence): the old version
// and time belong to the very record whose `next` its CAS changes.
// Settling is one CAS of the version's word, from the provisional version it was made with to the
// same one, final, if nothing was removed with a later version or time; else the late time is set
// first, by whoever comes first, and then the version with the mark that says so.
//
// Reclamation. Everybody is pinned (epoch.hpp) while holding a reference. A flagged record that is
// unlinked was reachable only through the word that was CASed (those before it that are flagged
// were unlinked earlier, by invariant 4), so new pins do not find it.
//
// Growth. One in kStep inserts of a thread may bring kStep buckets into use, which is one CAS; each
// insert of that thread links one of them then (Growth). Buckets in use that are not linked yet
// change no walk's end, only where it begins, at the cost of a miss; and an insert that finds its
// own one not linked links it. So a thread that never calls again leaves at most kStep of them.
//
// Progress. Every retry follows another thread's successful CAS. A bucket being linked is nobody's
// obstacle: its words are read through, and walks start at its ancestor. No word is a lock.
// Readers never write.
//
// Cost. A claim of a new key: the bucket's line, and its own cell, written behind the one its
// thread wrote before. A replay: bucket's line, cell. One bucket to a record once it has grown, so
// every second walk passes another record; fewer where initial_capacity was given.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "answers.hpp"
#include "buckets.hpp"
#include "capacity.hpp"
#include "cell.hpp"
#include "cell_write.hpp"
#include "idem/pause_point.hpp"
#include "idem/store.hpp"
#include "moment.hpp"
#include "slab.hpp"

namespace idem::memory {

class Shard {
 public:
  struct Options {
    std::uint32_t buckets = 64;  // to start with; a power of two, at least 16
    Time birth{};                // of the store
    Capacity* capacity = nullptr;
    Slab* slab = nullptr;   // borrowed; may serve other shards too
    char* index = nullptr;  // room for the buckets' words, zero-filled, borrowed; else its own
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

  // Where the walk to a key begins, mostly.
  using Word = std::atomic<std::uint64_t>;
  [[nodiscard]] Word& first_word(std::uint64_t hash) const {
    return buckets_.word(buckets_.of(hash));
  }
  // Fetches what the call to come will need: first its bucket's line; when that is there, the
  // record it leads to; and when that is another key's, the one behind it. `first`:
  // first_word(hash). All always_inline: g++ 12 takes a call of a function that does nothing but
  // fetch for nothing.
  [[gnu::always_inline]] static void prefetch_bucket(const Word& first) {
    __builtin_prefetch(&first);
  }
  [[gnu::always_inline]] void prefetch_record(const Word& first, std::uint64_t hash) const {
    prefetch(link_in(first), record_place(hash));
  }
  [[gnu::always_inline]] void prefetch_behind(const Word& first, std::uint64_t hash) const {
    prefetch_second(link_in(first), record_place(hash));
  }
  // first: first_word(hash).
  [[nodiscard]] Done insert(Word& first, std::uint64_t hash, Insert& op, Moment& moment);
  [[nodiscard]] Done replace(std::uint64_t hash, Replace& op, Moment& moment);
  [[nodiscard]] Done remove(std::uint64_t hash, Remove& op, Moment& moment);
  [[gnu::noinline]] void load(std::uint64_t hash, Load& op, Moment moment) noexcept {
    const Cell* const cell = find(hash, op.key);
    IDEM_PAUSE_POINT("memory.load.found");
    if (cell == nullptr) [[unlikely]]
      return answer_absent(op.answer, absent_at(moment));
    // A reader writes only here, and only to a record whose insert has not returned yet.
    answer_stands(op.answer, *cell, settled(const_cast<Cell&>(*cell)), moment);
  }
  // What a load or an insert answers that finds the record of a bare key in front, if it is a usual
  // one; else it does nothing: false. Most calls end here, after the fewest steps.
  [[nodiscard, gnu::always_inline]] bool stands_in_front(const Word& first, std::uint64_t hash,
                                                         std::optional<std::string_view> bare,
                                                         Answer& answer,
                                                         Moment moment) const noexcept {
    if (!bare) return false;
    const std::uint32_t number = Link(first.load()).number_at(record_place(hash));
    if (number == 0) [[unlikely]]
      return false;
    const Cell& cell = slab_.cell(number);
    IDEM_PAUSE_POINT("memory.find.record");
    if (Link(cell.next.load()).flagged()) [[unlikely]]
      return false;
    IDEM_PAUSE_POINT("memory.load.found");
    return answer_usual(answer, cell, *bare, moment);
  }
  // Removes the record in that cell if it is expired. not_there: it is not current, or another
  // thread was faster. yes: its cell is in the chain, or was retired by who passed it.
  enum class Evicted { yes, not_yet, not_there };
  [[nodiscard]] Evicted evict(std::uint64_t hash, std::uint32_t number, Time now,
                              Slab::Chain& chain);

  // The current records of the first run whose order, its place turned round, is at least `from`;
  // and its order. nullopt: none.
  [[nodiscard]] std::optional<std::uint32_t> next_run(std::uint32_t from,
                                                      std::vector<const Cell*>& run);
  // The version's word of a linked record, settled.
  [[nodiscard]] std::uint64_t settled(Cell& cell) noexcept {
    const std::uint64_t known = cell.version_word.load();
    return (known & Cell::kProvisional) == 0 ? known : settle(cell, known);
  }

  // Buckets that came into use together. The thread that brought them there links them, as it goes
  // on claiming: each in a step that fetches ahead for the two after it.
  class Growth {
   public:
    Growth() = default;
    // The next `steps` of them; all steps: all of the buckets.
    static constexpr std::uint32_t kSteps = Buckets::kStep + 2;
    [[gnu::always_inline]] void go_on(std::uint32_t steps) {
      if (at_ == kSteps) [[likely]]
        return;
      const std::uint32_t from = at_;
      at_ = steps < kSteps - from ? from + steps : kSteps;
      shard_->link_some(first_, from, at_);
    }

   private:
    friend class Shard;
    Growth(Shard* shard, std::uint32_t first) : shard_(shard), first_(first), at_(0) {}

    Shard* shard_ = nullptr;
    std::uint32_t first_ = 0;
    std::uint32_t at_ = kSteps;
  };
  // Tells the shard about `records` more (or fewer) than before, of which it may have been told
  // only now and then: the index grows by this.
  Growth count(std::int64_t records);
  [[nodiscard]] std::uint64_t index_bytes() const { return buckets_.bytes(); }

 private:
  // Where a walk ended.
  struct Place {
    std::atomic<std::uint64_t>* word = nullptr;  // what leads to the cell or, absent, to the run
    Link seen;                                   // what it held: the expected value of a CAS
    Cell* cell = nullptr;                        // what was looked for; nullptr: it is not there
    Link next;                                   // of the cell: unflagged
  };

  template <class Match>
  Place locate(Buckets::Start start, std::uint32_t place, Match&& match);
  Place locate_key(Buckets::Start start, std::uint64_t hash, const KeyRef& key);
  [[nodiscard]] Buckets::Start start_of_insert(std::uint64_t hash, Word& first);
  [[nodiscard]] const Cell* find(std::uint64_t hash, const KeyRef& key) const;
  [[nodiscard]] static Link link_in(const Word& word) {
    // acquire: pairs with the CAS that linked what it leads to
    return Link(word.load(std::memory_order_acquire)).plain();
  }
  // Of a walk to that place.
  [[gnu::always_inline]] void prefetch(Link at, std::uint32_t place) const {
    if (at.number() == 0) return;
    if (at.place() == place)
      fetch(slab_.cell(at.number()));
    else if (precedes(at.place(), place))
      __builtin_prefetch(slab_.cell_at(at.number()));  // only its link will be looked at
  }
  // What is behind the record that a walk comes to first.
  [[gnu::always_inline]] void prefetch_second(Link at, std::uint32_t place) const {
    if (at.number() == 0 || !precedes(at.place(), place)) return;
    prefetch(link_in(slab_.cell(at.number()).next), place);
  }
  // A cell's first three lines; of a claim two are enough, and the third is its neighbour's.
  [[gnu::always_inline]] static void fetch(const Cell& cell) {
    const char* const at = reinterpret_cast<const char*>(&cell);
    __builtin_prefetch(at);
    __builtin_prefetch(at + 64);
    __builtin_prefetch(at + 128);
  }
  [[nodiscard]] std::uint64_t settle(Cell& cell, std::uint64_t known) noexcept;
  [[nodiscard]] std::uint64_t settle_made(Cell& cell, std::uint64_t version, Time planned) noexcept;

  // A cell holding the draft, unlinked; 0: no memory.
  struct Made {
    std::uint32_t number = 0;
    Cell* cell = nullptr;
  };
  [[nodiscard]] Made make(const CellPlan& plan, const KeyRef& key, const Draft& draft);
  void discard(const Made& made, std::int64_t entries, std::int64_t bytes);
  // Takes a flagged record out of the list, and sees to it that somebody did. True: this call did,
  // and retires it.
  [[nodiscard]] bool unlink(const Place& place, Link to, std::uint64_t hash);
  void find_unlinked(std::uint64_t hash);
  [[nodiscard]] bool flag_removed(const Place& place, std::uint64_t version, Time now);
  void link_bucket(std::uint32_t bucket);
  void link_some(std::uint32_t first, std::uint32_t from, std::uint32_t to);
  // The time of an answer that found nothing: not before the removal that may be the reason.
  [[nodiscard]] Time absent_at(Moment& moment) const {
    return moment.not_before(Time(Micros(removed_at_.load())));
  }

  const Time birth_;
  Capacity& capacity_;
  Slab& slab_;
  Buckets buckets_;
  alignas(64) std::atomic<std::int64_t> records_{0};  // roughly: see count()
  // Removals raise them, before the record is flagged; inserts read them.
  alignas(64) std::atomic<std::uint64_t> floor_{0};
  std::atomic<std::int64_t> removed_at_{0};  // µs: the latest removal's time
};

// The readers' walk: it passes flagged records and writes nothing.
inline const Cell* Shard::find(std::uint64_t hash, const KeyRef& key) const {
  const std::uint32_t place = record_place(hash);
  Link at = buckets_.start(buckets_.of(hash)).seen;
  for (;;) {
    at = at.plain();
    if (at.place() == place && at.number() != 0) [[likely]] {
      const Cell& cell = slab_.cell(at.number());
      IDEM_PAUSE_POINT("memory.find.record");
      at = Link(cell.next.load());
      if (!at.flagged() && cell.is(key)) [[likely]]
        return &cell;
    } else if (!precedes(at.place(), place)) {
      return nullptr;
    } else if (at.is_marker()) {
      at = Link(buckets_.word(at.bucket()).load());
    } else {
      at = Link(slab_.cell(at.number()).next.load());
    }
  }
}

}  // namespace idem::memory
