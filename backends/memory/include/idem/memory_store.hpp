// The memory store: an IdempotencyStore in this process's memory, gone with it.
//
// Lock-free: no mutex, and no waiting for another thread's progress, in any verb. A thread that is
// frozen or killed inside a call blocks nobody; what it may hold back is the reuse of memory
// (MemoryGauges::limbo). backends/memory/README.md tells how it is made.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>

#include "idem/clock.hpp"
#include "idem/key.hpp"
#include "idem/store.hpp"
#include "idem/time.hpp"

namespace idem {

struct MemoryOptions {
  // 1..4096, rounded up to a power of two. More shards: fewer threads that meet on one counter.
  // Each takes a few KiB.
  std::size_t shards = 64;
  // 0: no bound. A full store answers errc::capacity to a write that would go over it, after it has
  // freed what is expired; nothing live is ever evicted.
  std::uint64_t max_entries = 0;
  // Of the records themselves (at least 128 bytes each, results included), not of the index, of
  // unused room in the slab, or of replaced records that a reader may still look at.
  std::uint64_t max_bytes = 0;
  // Records to make room for at once, so that the index need not grow on the way there. Takes 21 to
  // 43 bytes for each: with room to spare, a call seldom meets a record that is not its own.
  std::uint64_t initial_capacity = 0;
  // Zero: expired records are freed by the calls that come, and by sweep(). Else also this often,
  // by a timer of the clock (of a virtual clock: by who advances it).
  Duration sweep_every{};
  Clock* clock = nullptr;  // nullptr: system_clock(). Must outlive the store
  // For tests: a worse hash than the store's own. Must give the same for the same key.
  std::function<std::uint64_t(KeyRef)> hash;
};

// What the store tells about itself; each exact when nothing runs.
struct MemoryGauges {
  std::uint64_t records = 0;   // expired ones not yet freed among them
  std::uint64_t bytes = 0;     // of everything: records, results, index, unused and limbo cells
  std::uint64_t limbo = 0;     // records no longer used, but maybe still looked at by a reader
  std::uint64_t watchers = 0;  // callbacks given to watch() and not called yet
};

// The verbs are those of IdempotencyStore. Results of up to 64 MiB; more is too_large.
// sweep: one pass over the expiry calendar (a line per 32 KiB of records), plus a few hundred
// nanoseconds per record freed; gives the pages of empty chunks back. stats and list walk the
// records.
class MemoryStore final : public IdempotencyStore {
 public:
  explicit MemoryStore(const MemoryOptions& options = {});
  ~MemoryStore() override;  // no call may be under way; watchers are dropped, not called

  void insert(std::span<Insert> ops) override;
  void replace(std::span<Replace> ops) override;
  void load(std::span<Load> ops) override;
  void remove(std::span<Remove> ops) override;
  result<std::uint64_t> sweep(std::size_t limit) override;
  result<Page> list(const ListQuery& query) override;
  result<StoreStats> stats() override;
  [[nodiscard]] const Capabilities& capabilities() const noexcept override;
  bool watch(KeyRef key, std::function<void()> changed) override;

  [[nodiscard]] MemoryGauges gauges() const;

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

[[nodiscard]] StorePtr make_memory_store(const MemoryOptions& options = {});

}  // namespace idem
