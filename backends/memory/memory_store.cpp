#include "idem/memory_store.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <charconv>
#include <limits>
#include <new>
#include <optional>
#include <utility>
#include <vector>

#include "answers.hpp"
#include "epoch.hpp"
#include "idem/list_filter.hpp"
#include "keyed_hash.hpp"
#include "shard.hpp"
#include "watch_table.hpp"

namespace idem {
namespace {

using memory::Cell;
using memory::Pin;
using memory::Shard;

constexpr std::uint64_t kResultBytesMax = std::uint64_t{64} << 20;
constexpr std::size_t kWindow = 16;        // calls of a batch whose misses overlap
constexpr std::size_t kStepsPerPin = 256;  // of long walks, so that they hold up no memory

void answer_failed(Answer& answer, errc code, const char* message) {
  answer.state = Answer::State::failed;
  answer.error = fail(code, message);
}

// Where a page ended: after the record of this key in the run of this order.
struct Cursor {
  std::size_t shard = 0;
  std::uint32_t order = 0;
  std::string after;  // storage name; empty: before the first of the run

  [[nodiscard]] std::string text() const {
    return std::to_string(shard) + "." + std::to_string(order) + "." + after;
  }
  [[nodiscard]] static std::optional<Cursor> parse(std::string_view text) {
    Cursor cursor;
    const char* const end = text.data() + text.size();
    const auto shard = std::from_chars(text.data(), end, cursor.shard);
    if (shard.ec != std::errc() || shard.ptr == end || *shard.ptr != '.') return std::nullopt;
    const auto order = std::from_chars(shard.ptr + 1, end, cursor.order);
    if (order.ec != std::errc() || order.ptr == end || *order.ptr != '.') return std::nullopt;
    cursor.after.assign(order.ptr + 1, end);
    return cursor;
  }
};

// Its result is copied only once it is selected.
std::optional<Listed> listed(const ListQuery& query, const Cell& cell, Time now) {
  Listed item;
  memory::describe(item.record, cell, cell.version.load());
  if (!selects(query, cell.key(), item.record, now)) return std::nullopt;
  item.key = Key(cell.key());
  item.record.result = cell.result();
  return item;
}

}  // namespace

class MemoryStore::Impl {
 public:
  explicit Impl(const MemoryOptions& options)
      : clock_(options.clock != nullptr ? *options.clock : system_clock()),
        injected_hash_(options.hash),
        capacity_(options.max_entries, options.max_bytes) {
    const std::size_t count = std::bit_ceil(std::clamp<std::size_t>(options.shards, 1, 4096));
    shard_bits_ = static_cast<unsigned>(std::bit_width(count)) - 1;
    Shard::Options shard;
    const std::uint64_t room = options.initial_capacity / count * 4 / 3;
    shard.buckets = static_cast<std::uint32_t>(
        std::bit_ceil(std::clamp<std::uint64_t>(room, 64, std::uint64_t{1} << 30)));
    shard.birth = clock_.now();
    shard.capacity = &capacity_;
    shards_.reserve(count);
    for (std::size_t i = 0; i < count; ++i) shards_.push_back(std::make_unique<Shard>(shard));
    capabilities_.backend = "memory";
    capabilities_.watches = true;
    capabilities_.frees_by_itself = true;
    capabilities_.result_bytes_max = kResultBytesMax;
    if (options.sweep_every > Duration()) {
      sweep_every_ = options.sweep_every;
      timers_ = clock_.timers();
      timers_->call_at(clock_.now() + sweep_every_, [this] { sweep_and_come_back(); });
    }
  }

  ~Impl() { timers_.reset(); }

  // Runs one verb over a batch: a window at a time hashed, fetched ahead, done while pinned, and
  // told to who watches when not pinned any more.
  template <class Op, class Step>
  void run(std::span<Op> ops, Step&& step) {
    if (memory::process_generation() != generation_) {
      for (Op& op : ops)
        answer_failed(op.answer, errc::wrong_process,
                      "this memory store belongs to the parent process: open one of your own");
      return;
    }
    std::array<std::uint64_t, kWindow> hashes{};
    std::array<bool, kWindow> changed{};
    while (!ops.empty()) {
      const std::span<Op> window = ops.first(std::min(kWindow, ops.size()));
      ops = ops.subspan(window.size());
      for (std::size_t i = 0; i < window.size(); ++i) hashes[i] = hash(window[i].key);
      {
        const Pin pin;
        if (window.size() > 1)
          for (std::size_t i = 0; i < window.size(); ++i) shard(hashes[i]).prefetch(hashes[i]);
        memory::Moment moment(clock_);
        for (std::size_t i = 0; i < window.size(); ++i)
          changed[i] = step(shard(hashes[i]), hashes[i], window[i], moment);
      }
      for (std::size_t i = 0; i < window.size(); ++i)
        if (changed[i]) watchers_.notify(hashes[i]);
    }
  }

  // A write step: makes room and tries again while the store is full, then keeps house.
  template <class Op, class Verb>
  bool write(Shard& shard, Op& op, memory::Moment& moment, Verb&& verb) {
    Shard::Done done = verb();
    while (done == Shard::Done::full) {
      if (make_room(moment.now()) == 0) {
        answer_failed(op.answer, errc::capacity,
                      "the memory store is full: raise max_entries or max_bytes, or shorten TTLs");
        return false;
      }
      done = verb();
    }
    // Not after a call that changed nothing: what it saw may be what its caller replaces next.
    if (op.answer.state == Answer::State::written) credit(shard.keep_house(moment.now()));
    return done == Shard::Done::changed;
  }

  void insert(std::span<Insert> ops) {
    run(ops, [this](Shard& shard, std::uint64_t hash, Insert& op, memory::Moment& moment) {
      if (too_large(op)) return false;
      return write(shard, op, moment, [&] { return shard.insert(hash, op, moment); });
    });
  }
  void replace(std::span<Replace> ops) {
    run(ops, [this](Shard& shard, std::uint64_t hash, Replace& op, memory::Moment& moment) {
      if (too_large(op)) return false;
      return write(shard, op, moment, [&] { return shard.replace(hash, op, moment); });
    });
  }
  void remove(std::span<Remove> ops) {
    run(ops, [this](Shard& shard, std::uint64_t hash, Remove& op, memory::Moment& moment) {
      return write(shard, op, moment, [&] { return shard.remove(hash, op, moment); });
    });
  }
  void load(std::span<Load> ops) {
    run(ops, [](Shard& shard, std::uint64_t hash, Load& op, memory::Moment& moment) {
      shard.load(hash, op, moment);
      return false;
    });
  }

  // What callers freed in passing since the last sweep counts as this one's: "how many" then means
  // the records that went, whoever freed them.
  std::uint64_t sweep(std::size_t limit) {
    // relaxed: a count orders nothing
    std::uint64_t passing = in_passing_.load(std::memory_order_relaxed);
    while (!in_passing_.compare_exchange_weak(
        passing, passing - std::min<std::uint64_t>(passing, limit), std::memory_order_relaxed)) {
    }
    const std::uint64_t counted = std::min<std::uint64_t>(passing, limit);
    return counted + free_expired(limit - static_cast<std::size_t>(counted));
  }

  std::uint64_t free_expired(std::size_t limit) {
    const std::size_t first = sweep_cursor_.fetch_add(1, std::memory_order_relaxed);
    std::uint64_t removed = 0;
    bool limbo = false;
    for (std::size_t i = 0; i < shards_.size(); ++i) {
      Shard& shard = *shards_[(first + i) % shards_.size()];
      for (std::size_t last = kStepsPerPin; last == kStepsPerPin && removed < limit;) {
        const Pin pin;
        last = shard.evict(clock_.now(), std::min<std::size_t>(kStepsPerPin, limit - removed));
        removed += last;
        if (last != 0) shard.reclaim(kStepsPerPin);
      }
      limbo = limbo || shard.limbo() != 0;
    }
    // Four steps of the epoch pass every limbo stack once, the newest after two: what was retired
    // comes home, unless a reader holds it. A sweep that came to its limit will be called again.
    const std::size_t each = removed < limit ? std::numeric_limits<std::size_t>::max() : limit;
    for (int step = 0; limbo && step < 4; ++step) {
      const Pin pin;
      for (const auto& shard : shards_)
        if (shard->limbo() != 0) shard->reclaim(each);
    }
    return removed;
  }

  Page list(const ListQuery& query, Cursor at) {
    Page page;
    page.now = clock_.now();
    const std::size_t limit = std::max<std::size_t>(1, query.limit);
    std::vector<const Cell*> run;
    for (; at.shard < shards_.size(); at = Cursor{at.shard + 1, 0, {}}) {
      for (bool more = true; more;) {
        const Pin pin;
        for (std::size_t step = 0; more && step < kStepsPerPin; ++step) {
          more = shards_[at.shard]->next_run(at.order, run);
          if (!more) break;
          if (list_run(query, run, limit, at, page)) return page;
          more = at.order != 0xFFFFFFFFU;
          ++at.order;
        }
      }
    }
    return page;
  }

  StoreStats stats() {
    StoreStats stats;
    const Time now = clock_.now();
    std::vector<const Cell*> run;
    for (const auto& shard : shards_) {
      stats.bytes += shard->bytes();
      std::uint32_t order = 0;
      for (bool more = true; more;) {
        const Pin pin;
        for (std::size_t step = 0; more && step < kStepsPerPin; ++step) {
          more = shard->next_run(order, run);
          for (const Cell* cell : run) {
            if (cell->status == Status::processing) ++stats.processing;
            if (cell->status == Status::success) ++stats.success;
            if (cell->status == Status::failed) ++stats.failed;
            if (now >= cell->expires_at()) ++stats.expired;
          }
          if (!run.empty()) order = memory::record_order(run.front()->hash);
          more = more && order != 0xFFFFFFFFU;
          ++order;
        }
      }
    }
    return stats;
  }

  MemoryGauges gauges() const {
    MemoryGauges gauges;
    for (const auto& shard : shards_) {
      gauges.records += shard->records();
      gauges.bytes += shard->bytes();
      gauges.limbo += shard->limbo();
    }
    gauges.watchers = watchers_.watchers();
    return gauges;
  }

  bool watch(KeyRef key, std::function<void()> changed) {
    if (foreign()) return false;
    return watchers_.watch(hash(key), std::move(changed));
  }

  [[nodiscard]] bool foreign() const { return memory::process_generation() != generation_; }
  [[nodiscard]] const Capabilities& capabilities() const { return capabilities_; }

 private:
  [[nodiscard]] std::uint64_t hash(KeyRef key) const {
    return injected_hash_ ? injected_hash_(key) : hash_(key);
  }
  [[nodiscard]] Shard& shard(std::uint64_t hash) {
    return *shards_[shard_bits_ == 0 ? 0 : hash >> (64 - shard_bits_)];
  }

  template <class Op>
  static bool too_large(Op& op) {
    if (op.draft.result.size() <= kResultBytesMax) return false;
    answer_failed(op.answer, errc::too_large, "the memory store keeps results of up to 64 MiB");
    return true;
  }

  // Frees a few expired records, wherever they are; how many. Pinned.
  std::size_t make_room(Time now) {
    std::size_t removed = 0;
    for (std::size_t i = 0; i < shards_.size() && removed == 0; ++i)
      removed = shards_[i]->evict(now, kWindow);
    credit(removed);
    return removed;
  }

  // Adds the wanted records of one run to the page, by key; true if the page is full.
  static bool list_run(const ListQuery& query, std::vector<const Cell*>& run, std::size_t limit,
                       Cursor& at, Page& page) {
    const std::uint32_t order = memory::record_order(run.front()->hash);
    if (order != at.order) at.after.clear();
    at.order = order;
    std::vector<std::pair<std::string, const Cell*>> named;
    named.reserve(run.size());
    for (const Cell* cell : run) named.emplace_back(storage_name(cell->key()), cell);
    std::sort(named.begin(), named.end());
    for (auto& [name, cell] : named) {
      if (name <= at.after) continue;
      auto item = listed(query, *cell, page.now);
      if (!item) continue;
      page.items.push_back(std::move(*item));
      if (page.items.size() < limit) continue;
      at.after = std::move(name);
      page.cursor = at.text();
      return true;
    }
    at.after.clear();
    return false;
  }

  void credit(std::uint64_t freed) {
    if (freed != 0) in_passing_.fetch_add(freed, std::memory_order_relaxed);
  }

  void sweep_and_come_back() {
    for (std::uint64_t freed = 1; freed != 0; credit(freed)) freed = free_expired(kStepsPerPin);
    timers_->call_at(clock_.now() + sweep_every_, [this] { sweep_and_come_back(); });
  }

  Clock& clock_;
  const std::uint32_t generation_ = memory::process_generation();
  const memory::KeyedHash hash_;
  const std::function<std::uint64_t(KeyRef)> injected_hash_;
  memory::Capacity capacity_;
  unsigned shard_bits_ = 0;
  std::vector<std::unique_ptr<Shard>> shards_;
  memory::WatchTable watchers_;
  std::atomic<std::size_t> sweep_cursor_{0};
  std::atomic<std::uint64_t> in_passing_{0};  // freed by callers and the background, not yet told
  Capabilities capabilities_;
  Micros sweep_every_{};
  std::unique_ptr<Timers> timers_;  // last: its work uses everything above
};

MemoryStore::MemoryStore(const MemoryOptions& options) : impl_(std::make_unique<Impl>(options)) {}
MemoryStore::~MemoryStore() = default;

void MemoryStore::insert(std::span<Insert> ops) { impl_->insert(ops); }
void MemoryStore::replace(std::span<Replace> ops) { impl_->replace(ops); }
void MemoryStore::load(std::span<Load> ops) { impl_->load(ops); }
void MemoryStore::remove(std::span<Remove> ops) { impl_->remove(ops); }

namespace {
Error not_ours() {
  return fail(errc::wrong_process,
              "this memory store belongs to the parent process: open one of your own");
}
Error no_memory() { return fail(errc::unavailable, "no memory left to build the answer"); }
}  // namespace

result<std::uint64_t> MemoryStore::sweep(std::size_t limit) {
  if (impl_->foreign()) return not_ours();
  return impl_->sweep(limit);
}

result<Page> MemoryStore::list(const ListQuery& query) try {
  if (impl_->foreign()) return not_ours();
  if (query.cursor.empty()) return impl_->list(query, {});
  const auto cursor = Cursor::parse(query.cursor);
  if (!cursor) return fail(errc::invalid_argument, "not a cursor of a memory store's page");
  return impl_->list(query, *cursor);
} catch (const std::bad_alloc&) {
  return no_memory();
}

result<StoreStats> MemoryStore::stats() try {
  if (impl_->foreign()) return not_ours();
  return impl_->stats();
} catch (const std::bad_alloc&) {
  return no_memory();
}

const Capabilities& MemoryStore::capabilities() const noexcept { return impl_->capabilities(); }

bool MemoryStore::watch(KeyRef key, std::function<void()> changed) {
  return impl_->watch(key, std::move(changed));
}

MemoryGauges MemoryStore::gauges() const { return impl_->gauges(); }

StorePtr make_memory_store(const MemoryOptions& options) {
  return std::make_shared<MemoryStore>(options);
}

}  // namespace idem
