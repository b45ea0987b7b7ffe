// The four operations of the contract on one session: a batch in, an answer per item out.
//
// Every answer is to be given: answer_later() before the call. Each operation returns a fault only
// if the session broke on the way; items still without an answer share that fate, and the caller
// tells them. Everything else is an answer of its item.
#pragma once

#include <algorithm>
#include <atomic>
#include <span>
#include <string>
#include <vector>

#include "idem/store.hpp"
#include "session.hpp"

namespace idem::mysql {

// A deadlock undoes a whole transaction, and it is run again: this often, then `busy`. Also how
// often an insert that was refused by a record which then was gone is tried.
inline constexpr int kUnitRuns = 10;

// What all batches of a store share. Thread safe.
struct Shared {
  // No version at or below it may be given to a new record: the largest one ever removed, as far as
  // this process knows. The table's own floor is checked after each insert.
  std::atomic<std::uint64_t> floor{0};
  // How many of a thousand recent claims found a record: read first, or insert first?
  std::atomic<std::uint32_t> duplicates_permille{0};

  void raise_floor(std::uint64_t seen) {
    std::uint64_t known = floor.load(std::memory_order_relaxed);
    while (known < seen && !floor.compare_exchange_weak(known, seen, std::memory_order_relaxed)) {
    }
  }
};

struct Work {
  Session& session;
  const std::string& table;
  Shared& shared;
  const Budget& budget;
  TimeSource time;
  std::uint64_t result_bytes_max;
};

[[nodiscard]] Fault load(const Work& work, std::span<Load* const> ops);
[[nodiscard]] Fault insert(const Work& work, std::span<Insert* const> ops);
[[nodiscard]] Fault replace(const Work& work, std::span<Replace* const> ops);
[[nodiscard]] Fault remove(const Work& work, std::span<Remove* const> ops);
// Up to `limit` expired records.
[[nodiscard]] result<std::uint64_t> sweep(const Work& work, std::size_t limit);

// --- between them ----------------------------------------------------------------------------

// An item of any operation: where its answer goes.
struct Item {
  KeyRef key;
  Answer* answer = nullptr;
};

// Loads each key and answers `stands`; those that are not there come back in `absent`, without an
// answer. A row that cannot be trusted is an answer, too: corrupt.
[[nodiscard]] Fault load_standing(const Work& work, std::span<const Item> items,
                                  std::vector<Item>& absent);
// As load_standing, but answers `absent`, too.
[[nodiscard]] Fault load_all(const Work& work, std::span<const Item> items);

inline constexpr std::size_t kPlacesPerRead = kRowsMax;

// Adds the keys, and the last one again until they are a power of two; how many that is.
std::size_t add_keys(Fields& fields, std::span<const Item> items);

// Adds the statements that read the keys. `items` is sorted by key. Returns the first's place;
// there are as many as are needed for kPlacesPerRead keys each.
std::size_t add_reads(const Work& work, Exchange& exchange, std::span<const Item> items,
                      Statement statement);
[[nodiscard]] inline std::size_t read_count(std::size_t items) {
  return (items + kPlacesPerRead - 1) / kPlacesPerRead;
}

// The items of this key, among items sorted by key.
[[nodiscard]] std::span<const Item> items_of(std::span<const Item> items, KeyRef key);

inline void answer_failed(Answer& answer, Error error) {
  answer.state = Answer::State::failed;
  answer.error = std::move(error);
}
inline void answer_later(Answer& answer) { answer_failed(answer, {}); }
[[nodiscard]] inline bool unanswered(const Answer& answer) {
  return answer.state == Answer::State::failed && answer.error.code == errc{};
}

// A fault that came before anything of the items without an answer was written.
[[nodiscard]] Fault not_applied(Fault fault);

// Nothing can be said of versions.
[[nodiscard]] Fault no_meta_row();

// Answers too_large unless the server takes the result.
[[nodiscard]] bool fits(const Work& work, const Draft& draft, Answer& answer);

// Finds out which of a transaction's statements took effect, of `count` statements from `first` on.
// A deadlock undoes those before it, but not those after it: see kBegin.
enum class Took : std::uint8_t { yes, again, no };
struct Effect {
  Took took = Took::again;
  Fault fault;  // no
};
[[nodiscard]] std::vector<Effect> effects(Session& session, Exchange& exchange, std::size_t first,
                                          std::size_t count, std::string_view what);

// A version and a key, to be deleted.
struct Doomed {
  KeyRef key;
  std::uint64_t version = 0;
  Took took = Took::again;
  Fault fault;
};
// Raises the floor to the largest version, and deletes each record that still has its version (and,
// if so asked, is expired). Returns with `now`.
[[nodiscard]] Fault delete_rows(const Work& work, std::span<Doomed> rows, bool only_expired,
                                Time& now);

}  // namespace idem::mysql
