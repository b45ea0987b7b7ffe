#include "idem/memory_store.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <limits>
#include <new>
#include <optional>
#include <type_traits>
#include <utility>
#include <vector>

#include "answers.hpp"
#include "epoch.hpp"
#include "housekeeping.hpp"
#include "idem/list_filter.hpp"
#include "keyed_hash.hpp"
#include "page_cursor.hpp"
#include "shard_array.hpp"
#include "watch_table.hpp"

namespace idem {
namespace {

using memory::Cell;
using memory::Cursor;
using memory::Pin;
using memory::Shard;

constexpr std::uint64_t kResultBytesMax = std::uint64_t{64} << 20;
template <class Op>
constexpr bool kWrites = !std::is_same_v<Op, Load>;
// Verbs that others may be waiting for. (An insert finds nobody waiting: there was no record.)
template <class Op>
constexpr bool kChanges = std::is_same_v<Op, Replace> || std::is_same_v<Op, Remove>;

constexpr std::size_t kWindow = 16;        // calls of a batch whose misses overlap
constexpr std::size_t kStepsPerPin = 256;  // of long walks, so that they hold up no memory

void answer_failed(Answer& answer, errc code, const char* message) {
  answer.state = Answer::State::failed;
  answer.error = fail(code, message);
}

// Its result is copied only once it is selected.
std::optional<Listed> listed(const ListQuery& query, const Cell& cell, Time now) {
  Listed item;
  memory::describe(item.record, cell, cell.fields(), cell.version(), cell.updated());
  if (!selects(query, cell.key(), item.record, now)) return std::nullopt;
  item.key = Key(cell.key());
  item.record.result = cell.result();
  return item;
}

}  // namespace

class MemoryStore::Impl : memory::ShardOf {
 public:
  explicit Impl(const MemoryOptions& options)
      : clock_(options.clock != nullptr ? *options.clock : system_clock()),
        birth_(clock_.now()),
        injected_hash_(options.hash),
        capacity_(options.max_entries, options.max_bytes),
        house_(slab_, *this, birth_),
        shards_(shard_count(options), shard_options(options)) {
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

  Impl(const Impl&) = delete;
  Impl& operator=(const Impl&) = delete;
  ~Impl() override { timers_.reset(); }

  // Where a key's record stands, or would.
  struct Found {
    Shard& shard;
    std::uint64_t hash;
    Shard::Word& first;                    // where the walk begins
    std::optional<std::string_view> bare;  // the key, if it is that
  };

  // Runs one verb over the operations of a call. All of it is one function for a single operation
  // with a bare key, which has nothing to overlap with but the next call: what the processor looks
  // ahead is some three hundred instructions, so the shorter the more of the next call's misses
  // begin meanwhile.
  template <class Op, class Step>
  [[gnu::always_inline]] void run(std::span<Op> ops, Step&& step) {
    if (ops.size() != 1 || memory::process_generation() != hashing_generation_) [[unlikely]]
      return run_otherwise(ops, step);
    memory::Moment moment(clock_);
    const std::optional<std::string_view> bare = bare_part(ops[0].key);
    if (!bare) [[unlikely]]
      return run_any(ops[0], moment, step);
    run_one(ops[0], bare, hash_.of_bare(*bare), moment, step);
  }

  template <class Op, class Step>
  [[gnu::always_inline]] void run_one(Op& op, std::optional<std::string_view> bare,
                                      std::uint64_t hashed, memory::Moment& moment, Step&& step) {
    bool changed = false;
    {
      const Pin pin;
      Shard& home = shard(hashed);
      changed = step(Found{home, hashed, home.first_word(hashed), bare}, op, moment);
      if constexpr (kWrites<Op>) keep_house<Op>({&op, 1}, hashed, moment.now());
    }
    if constexpr (kChanges<Op>)
      if (changed) watchers_.notify(hashed);
  }

  template <class Op, class Step>
  [[gnu::noinline]] void run_any(Op& op, memory::Moment moment, Step&& step) {
    run_one(op, bare_part(op.key), hash(op.key), moment, step);
  }

  template <class Op, class Step>
  [[gnu::noinline]] void run_otherwise(std::span<Op> ops, Step&& step) {
    if (foreign()) return answer_foreign(ops);
    if (ops.size() != 1) return run_batch(ops, step);
    memory::Moment moment(clock_);
    run_any(ops[0], moment, step);
  }

  // A window at a time hashed, fetched ahead, done while pinned, and told to who watches when not
  // pinned any more.
  template <class Op, class Step>
  [[gnu::noinline]] void run_batch(std::span<Op> ops, Step&& step) {
    std::array<std::uint64_t, kWindow> hashes;
    std::array<Shard::Word*, kWindow> words;
    std::array<bool, kWindow> changed{};
    while (!ops.empty()) {
      const std::span<Op> window = ops.first(std::min(kWindow, ops.size()));
      ops = ops.subspan(window.size());
      for (std::size_t i = 0; i < window.size(); ++i) {
        hashes[i] = hash(window[i].key);
        words[i] = &shard(hashes[i]).first_word(hashes[i]);
        Shard::prefetch_bucket(*words[i]);
      }
      {
        const Pin pin;
        for (std::size_t i = 0; i < window.size(); ++i)
          shard(hashes[i]).prefetch_record(*words[i], hashes[i]);
        if constexpr (!std::is_same_v<Op, Insert>)  // whose key is mostly new: it goes no further
          for (std::size_t i = 0; i < window.size(); ++i)
            shard(hashes[i]).prefetch_behind(*words[i], hashes[i]);
        memory::Moment moment(clock_);
        for (std::size_t i = 0; i < window.size(); ++i)
          changed[i] = step(Found{shard(hashes[i]), hashes[i], *words[i], bare_part(window[i].key)},
                            window[i], moment);
        if constexpr (kWrites<Op>) keep_house<Op>(window, hashes[window.size() - 1], moment.now());
      }
      if constexpr (kChanges<Op>)
        for (std::size_t i = 0; i < window.size(); ++i)
          if (changed[i]) watchers_.notify(hashes[i]);
    }
  }

  // A share of it, after writes. Not after calls that changed nothing: what they saw may be what
  // their callers replace next.
  template <class Op>
  void keep_house(std::span<const Op> ops, std::uint64_t last_hash, Time now) {
    const auto written =
        static_cast<std::uint32_t>(std::count_if(ops.begin(), ops.end(), [](const Op& op) {
          return op.answer.state == Answer::State::written;
        }));
    if (written == 0) return;
    if constexpr (std::is_same_v<Op, Insert>) house_.added(shard(last_hash), written);
    if constexpr (std::is_same_v<Op, Remove>) house_.removed(shard(last_hash), written);
    credit(house_.after_writes(written, now));
  }

  template <class Op>
  static void answer_foreign(std::span<Op> ops) {
    for (Op& op : ops)
      answer_failed(op.answer, errc::wrong_process,
                    "this memory store belongs to the parent process: open one of your own");
  }

  // A write step: makes room and tries again while the store is full.
  template <class Op, class Verb>
  bool write(Op& op, memory::Moment& moment, Verb&& verb) {
    Shard::Done done = verb();
    while (done == Shard::Done::full) {
      if (make_room(moment.now()) == 0) {
        answer_failed(op.answer, errc::capacity,
                      "the memory store is full: raise max_entries or max_bytes, or shorten TTLs");
        return false;
      }
      done = verb();
    }
    return done == Shard::Done::changed;
  }

  [[gnu::flatten]] void insert(std::span<Insert> ops) {
    run(ops, [this](const Found& at, Insert& op, memory::Moment& moment) {
      if (too_large(op) || at.shard.stands_in_front(at.first, at.hash, at.bare, op.answer, moment))
        return false;
      return write(op, moment, [&] { return at.shard.insert(at.first, at.hash, op, moment); });
    });
  }
  [[gnu::flatten]] void replace(std::span<Replace> ops) {
    run(ops, [this](const Found& at, Replace& op, memory::Moment& moment) {
      if (too_large(op)) return false;
      return write(op, moment, [&] { return at.shard.replace(at.hash, op, moment); });
    });
  }
  void remove(std::span<Remove> ops) {
    run(ops, [this](const Found& at, Remove& op, memory::Moment& moment) {
      return write(op, moment, [&] { return at.shard.remove(at.hash, op, moment); });
    });
  }
  [[gnu::flatten]] void load(std::span<Load> ops) {
    run(
        ops, [](const Found& at, Load& op, memory::Moment& moment) __attribute__((always_inline)) {
          if (!at.shard.stands_in_front(at.first, at.hash, at.bare, op.answer, moment)) [[unlikely]]
            at.shard.load(at.hash, op, moment);
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
    // relaxed: only where to begin, so that sweeps with small limits come round
    const std::uint32_t first = sweep_cursor_.load(std::memory_order_relaxed);
    const std::uint32_t chunks = slab_.chunks();
    std::uint32_t looked = 0;
    std::uint64_t removed = 0;
    while (looked < chunks && removed < limit) {
      const Pin pin;
      const std::size_t most = std::min<std::size_t>(kStepsPerPin, limit - removed);
      const std::size_t gone = house_.evict(clock_.now(), most, first, looked);
      if (gone != 0) slab_.reclaim(kStepsPerPin * 2);
      removed += gone;
    }
    sweep_cursor_.store(first + looked, std::memory_order_relaxed);
    // A sweep that came to its limit will be called again.
    bring_home(removed < limit ? std::numeric_limits<std::size_t>::max() : limit);
    return removed;
  }

  // Four steps of the epoch pass every limbo stack once, the newest after two: what was retired
  // comes home, unless a reader holds it.
  void bring_home(std::size_t each) {
    for (int step = 0; slab_.limbo_cells() != 0 && step < 4; ++step) {
      const Pin pin;
      slab_.reclaim_everywhere(each);
    }
    slab_.trim();
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
          const auto order = shards_[at.shard].next_run(at.order, run);
          if (!order) {
            more = false;
            break;
          }
          if (list_run(query, run, *order, limit, at, page)) return page;
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
    stats.bytes = bytes();
    std::vector<const Cell*> run;
    for (Shard& shard : shards_) {
      std::uint32_t order = 0;
      for (bool more = true; more;) {
        const Pin pin;
        for (std::size_t step = 0; more && step < kStepsPerPin; ++step) {
          order = shard.next_run(order, run).value_or(0xFFFFFFFFU);
          for (const Cell* cell : run) {
            if (cell->status() == Status::processing) ++stats.processing;
            if (cell->status() == Status::success) ++stats.success;
            if (cell->status() == Status::failed) ++stats.failed;
            if (now >= cell->expires_at()) ++stats.expired;
          }
          more = order != 0xFFFFFFFFU;
          ++order;
        }
      }
    }
    return stats;
  }

  MemoryGauges gauges() const {
    MemoryGauges gauges;
    gauges.records = house_.records();
    gauges.bytes = bytes();
    gauges.limbo = slab_.limbo_cells();
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
  [[nodiscard]] static std::size_t shard_count(const MemoryOptions& options) {
    return std::bit_ceil(std::clamp<std::size_t>(options.shards, 1, 4096));
  }
  [[nodiscard]] Shard::Options shard_options(const MemoryOptions& options) {
    // Three to five buckets to a record: few walks pass another key's, which would be one more
    // miss.
    const std::uint64_t room = options.initial_capacity / shard_count(options) * 8 / 3;
    const auto buckets = static_cast<std::uint32_t>(
        std::bit_ceil(std::clamp<std::uint64_t>(room, 64, std::uint64_t{1} << 30)));
    return {buckets, birth_, &capacity_, &slab_};
  }
  [[nodiscard, gnu::always_inline]] inline std::uint64_t hash(const KeyRef& key) const {
    if (injected_hash_) [[unlikely]]
      return injected_hash(key);
    return hash_(key);
  }
  [[nodiscard, gnu::noinline]] std::uint64_t injected_hash(const KeyRef& key) const {
    return injected_hash_(key);
  }
  [[nodiscard]] static std::optional<std::string_view> bare_part(const KeyRef& key) {
    if (!memory::KeyedHash::is_bare(key)) return std::nullopt;
    return std::string_view(key.key.data(), key.key.size());  // no copy through a vector register
  }
  [[nodiscard]] std::uint64_t bytes() const {
    std::uint64_t bytes = slab_.resident_bytes();
    for (const Shard& shard : shards_) bytes += shard.index_bytes();
    return bytes;
  }
  [[nodiscard]] Home home_of(const Cell& cell) const override {
    const std::uint64_t hashed = hash(cell.key());
    return {&shard(hashed), hashed};
  }
  [[nodiscard]] Shard& shard(std::uint64_t hash) const { return shards_.of(hash); }

  template <class Op>
  static bool too_large(Op& op) {
    if (op.draft.result.size() <= kResultBytesMax) return false;
    answer_failed(op.answer, errc::too_large, "the memory store keeps results of up to 64 MiB");
    return true;
  }

  // Frees a few expired records, wherever they are; how many. Pinned.
  std::size_t make_room(Time now) {
    std::size_t removed = 0;
    const std::uint32_t chunks = slab_.chunks();
    for (std::uint32_t looked = 0; looked < chunks && removed == 0;)
      removed = house_.evict(now, kWindow, 0, looked);
    credit(removed);
    return removed;
  }

  // Adds the wanted records of one run to the page, by key; true if the page is full.
  static bool list_run(const ListQuery& query, std::vector<const Cell*>& run, std::uint32_t order,
                       std::size_t limit, Cursor& at, Page& page) {
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
  const Time birth_;
  const std::uint32_t generation_ = memory::process_generation();
  const memory::KeyedHash hash_;
  const std::function<std::uint64_t(KeyRef)> injected_hash_;
  // The generation of a store that hashes by itself; else none.
  const std::uint32_t hashing_generation_ = injected_hash_ ? memory::kNoGeneration : generation_;
  memory::Capacity capacity_;
  memory::Slab slab_;
  memory::Housekeeping house_;
  memory::ShardArray shards_;
  memory::WatchTable watchers_;
  std::atomic<std::uint32_t> sweep_cursor_{0};
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
