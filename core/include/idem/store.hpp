// The contract every backend fulfils: versioned records, one atomic step per key.
//
// A store does not know what a claim is. state_machine.hpp decides; a store keeps what was decided
// only if nothing changed meanwhile, and always answers with what it holds and its own time, read
// together. docs/writing-a-backend.md walks through an implementation; idem::conformance proves
// one.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "idem/error.hpp"
#include "idem/key.hpp"
#include "idem/record.hpp"
#include "idem/time.hpp"

namespace idem {

// A record to be written. Times are lengths; the store adds its own now.
struct Draft {
  Fingerprint request_hash;
  Owner owner;
  std::uint64_t fence = 0;  // 0: this write is a claim, its fence is the version it gets
  std::uint32_t attempt = 1;
  Status status = Status::processing;
  FailKind fail_kind = FailKind::none;
  bool fresh = true;  // begins an incarnation: create_time = now. Else create_time stays
  bool tombstone = false;
  Micros lease{};           // processing: lease_until = now + lease; else lease_until = Time{}
  Micros retry_after{};     // failed: retry_at = now + retry_after; else retry_at = Time{}
  Micros keep{};            // expires_at = now + keep
  std::string_view result;  // borrowed until the call returns
};

// What a draft becomes when it is written at `now` with this version. The record's buffers are
// reused.
void record_of(const Draft& draft, std::uint64_t version, Time now, Time create_time,
               Record& record);

// What a store says about one item.
struct Answer {
  enum class State : std::uint8_t {
    written,  // done; `held` is the record as it is now (for remove: nothing is held)
    stands,   // not done; `held` is the record that stands there
    absent,   // not done; nothing is there (for load: the answer)
    failed,   // `error` tells; `held` and `now` mean nothing
  };
  State state = State::failed;
  // The store's clock, read in the same atomic step, or right behind an insert: what is concluded
  // from it is written on condition of `version`.
  Time now{};
  Record held;    // its buffers are reused: keep an operation to spare allocations
  Error error{};  // failed: unknown = may have been applied, repeat it; all others = not applied
};

// In all four: `key` is valid (check_key) and borrowed until the call returns. Items of a batch are
// independent: a failing one leaves its neighbours alone. The same key may stand in several items;
// they take effect in input order.

struct Insert {
  KeyRef key;
  Draft draft;
  Answer answer;
};

struct Replace {
  KeyRef key;
  std::uint64_t expected = 0;  // version
  Draft draft;
  Answer answer;
};

struct Load {
  KeyRef key;
  Answer answer;
};

struct Remove {
  KeyRef key;
  std::uint64_t expected = 0;  // version
  Answer answer;
};

// How much of an acknowledged write survives what.
enum class Durability : std::uint8_t {
  none,     // gone with the store's process
  process,  // survives the store's process, not a power cut
  power,    // survives a power cut, if the disk tells the truth
};

struct Capabilities {
  std::string backend;  // "memory", "sqlite" ...
  Durability durability = Durability::none;
  bool multi_process = false;  // several processes can share the store
  bool server_clock = false;   // its time is a server's, not the injected clock
  bool watches = false;        // watch() works
  // Expired records may go before any sweep: other calls free them, or the server does. Where an
  // expired record would stand, nothing may stand.
  bool frees_by_itself = false;
  std::uint64_t result_bytes_max = 0;
};

struct StoreStats {
  std::uint64_t processing = 0;  // by stored status, expired ones not yet swept among them
  std::uint64_t success = 0;
  std::uint64_t failed = 0;
  std::uint64_t expired = 0;  // of the three above: past expires_at
  std::uint64_t bytes = 0;    // what they take, indexes and all, as far as the store can tell

  [[nodiscard]] std::uint64_t records() const { return processing + success + failed; }
};

struct ListQuery {
  std::optional<Status> status;
  // Processing records whose lease is over and whose last claim or renewal is this long ago.
  std::optional<Micros> lapsed_for;
  std::optional<std::string> tenant;
  std::optional<std::string> biz_type;
  std::size_t limit = 100;
  std::string cursor;  // empty: from the start; else Page::cursor of the page before
};

struct Listed {
  Key key;
  Record record;
};

struct Page {
  std::vector<Listed> items;
  Time now{};
  std::string cursor;  // empty: nothing more
};

// Share freely between threads. Owns its connections, borrows its Clock.
class IdempotencyStore {
 public:
  IdempotencyStore() = default;
  IdempotencyStore(const IdempotencyStore&) = delete;
  IdempotencyStore& operator=(const IdempotencyStore&) = delete;
  virtual ~IdempotencyStore() = default;

  // Stores each draft whose key has no record. Of any number of racing inserts on one key exactly
  // one is written. An expired record still counts as present: the caller replaces it.
  //
  // op.answer   written, or stands with what is there
  // version     max(old + 1, now in µs, draft.fence), where old is the last version this key ever
  //             had as far as the store can know, also after it was removed: fences grow over
  //             incarnations, and over a move from a store whose clock is ahead
  // Cost        one round trip per batch; O(1) per item in memory
  virtual void insert(std::span<Insert> ops) = 0;

  // Replaces each record whose version is op.expected; else tells what stands there, or absent.
  // A record past its expires_at is replaced only by a fresh draft (a draft that is not fresh finds
  // it standing: the dead are not resurrected). A fresh draft need not find it expired.
  // Cost as insert.
  virtual void replace(std::span<Replace> ops) = 0;

  // Answers stands or absent; an expired record stands. Sees every write acknowledged before the
  // call began. Never writes.
  virtual void load(std::span<Load> ops) = 0;

  // Removes each record whose version is op.expected; else tells what stands there, or absent.
  virtual void remove(std::span<Remove> ops) = 0;

  // Frees up to `limit` records that are past expires_at; how many. Never anything else: the test
  // and the removal are one atomic step per record. Several at once are harmless.
  virtual result<std::uint64_t> sweep(std::size_t limit) = 0;

  // A page of unexpired records, short if results are large, in the store's own order. What neither
  // comes nor goes meanwhile is listed once over all pages. For administration, not for hot paths.
  virtual result<Page> list(const ListQuery& query) = 0;

  virtual result<StoreStats> stats() = 0;

  [[nodiscard]] virtual const Capabilities& capabilities() const noexcept = 0;

  // Calls `changed` once, from the thread of the writer, soon after the next replace or remove of
  // that key by this process; may also call it for no reason. `changed` must be short, must not
  // throw, and may call the store. To miss nothing: watch, then load.
  // False (and `changed` is dropped) if this store cannot: poll instead.
  virtual bool watch(KeyRef key, std::function<void()> changed);
};

using StorePtr = std::shared_ptr<IdempotencyStore>;

}  // namespace idem
