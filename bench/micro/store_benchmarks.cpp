// Every store of this build and every variant of it, in the scenarios that matter to a claim.
#include <atomic>
#include <memory>

#include "idem/open.hpp"
#include "load/free_store.hpp"
#include "micro/benchmarks.hpp"
#include "micro/callers.hpp"
#include "micro/keys.hpp"
#include "micro/threaded.hpp"

namespace idem::bench {
namespace {

constexpr std::size_t kReplayKeys = 16'384;
constexpr std::size_t kPreloadBatch = 256;
constexpr std::uint64_t kSharedSeries = 0;

// What the threads of one row share. Thread 0 fills it before its loop and empties it after: the
// loop begins and ends with a barrier.
struct Arena {
  Fixture fixture;
  std::unique_ptr<IdempotencyService> service;
  KeyBlock keys;
  std::atomic<std::int64_t> wins{0};
  std::atomic<int> threads_left{0};

  template <class Target>
  Target& target();
};
template <>
IdempotencyStore& Arena::target<IdempotencyStore>() {
  return *fixture.store;
}
template <>
IdempotencyService& Arena::target<IdempotencyService>() {
  return *service;
}

using OpenFixture = std::function<result<Fixture>()>;

// A private store, and `count` keys for all. If it cannot be opened the row fails; a free store
// keeps the other threads going, which are on their way to the barrier.
bool set_up(benchmark::State& state, Arena& arena, const OpenFixture& open, std::size_t count) {
  auto opened = open();
  if (opened) {
    arena.fixture = std::move(*opened);
  } else {
    arena.fixture.store = std::make_shared<FreeStore>();
    state.SkipWithError(opened.error().message.c_str());
  }
  arena.service = std::make_unique<IdempotencyService>(arena.fixture.store);
  arena.keys = KeyBlock(kSharedSeries, count);
  arena.wins = 0;
  arena.threads_left = state.threads();
  return opened.has_value();
}

void tear_down(Arena& arena) {
  arena.service.reset();
  arena.fixture = {};
  arena.keys = {};
}

// Claimed and completed, in large batches.
bool preload(Arena& arena) {
  IdempotencyStore& store = *arena.fixture.store;
  for (std::size_t at = 0; at < arena.keys.size(); at += kPreloadBatch) {
    const std::size_t count = std::min(kPreloadBatch, arena.keys.size() - at);
    std::vector<Insert> inserts(count);
    std::vector<Replace> replaces(count);
    for (std::size_t i = 0; i < count; ++i) {
      inserts[i].key = arena.keys[at + i];
      inserts[i].draft.request_hash = benchmark_fingerprint();
      inserts[i].draft.lease = inserts[i].draft.keep = std::chrono::hours(24);
    }
    store.insert(inserts);
    for (std::size_t i = 0; i < count; ++i) {
      if (inserts[i].answer.state != Answer::State::written) return false;
      replaces[i].key = inserts[i].key;
      replaces[i].expected = inserts[i].answer.held.version;
      replaces[i].draft = inserts[i].draft;
      replaces[i].draft.fresh = false;
      replaces[i].draft.fence = inserts[i].answer.held.fence;
      replaces[i].draft.status = Status::success;
      replaces[i].draft.result = benchmark_result();
    }
    store.replace(replaces);
    for (const Replace& replace : replaces)
      if (replace.answer.state != Answer::State::written) return false;
  }
  return true;
}

void finish(benchmark::State& state, std::int64_t wrong, const char* what) {
  state.SetItemsProcessed(state.iterations());
  if (wrong > 0) state.SkipWithError(what);
}

// Each thread claims keys that nobody else does; with `complete` it also completes each.
template <class Caller>
void unique(benchmark::State& state, Arena& arena, const OpenFixture& open, bool complete) {
  const bool first = state.thread_index() == 0;
  if (first && !set_up(state, arena, open, 0)) return;
  const KeyBlock keys(1 + static_cast<std::uint64_t>(state.thread_index()),
                      static_cast<std::size_t>(state.max_iterations));
  Caller caller;
  std::size_t i = 0;
  std::int64_t wrong = 0;
  for ([[maybe_unused]] auto _ : state) {
    auto& target = arena.target<typename Caller::Target>();
    const bool won = caller.claim(target, keys[i++]) == Claim::won;
    wrong += won && (!complete || caller.complete(target)) ? 0 : 1;
  }
  finish(state, wrong, "a claim of a new key was not given");
  if (first) tear_down(arena);
}

// Keys that are done already: any of many, or one and the same for all threads.
template <class Caller>
void replay(benchmark::State& state, Arena& arena, const OpenFixture& open, std::size_t count) {
  const bool first = state.thread_index() == 0;
  if (first) {
    if (!set_up(state, arena, open, count)) return;
    if (!preload(arena)) return state.SkipWithError("the keys could not be made");
  }
  Caller caller;
  Draw draw(static_cast<std::uint64_t>(state.thread_index()) + 1);
  std::int64_t wrong = 0;
  for ([[maybe_unused]] auto _ : state) {
    auto& target = arena.target<typename Caller::Target>();
    const std::size_t at = count == 1 ? 0 : draw.below(count);
    wrong += caller.claim(target, arena.keys[at]) == Claim::replayed ? 0 : 1;
  }
  finish(state, wrong, "a finished key was not replayed");
  if (first) tear_down(arena);
}

// All threads claim the same keys in the same order: every key has one winner.
template <class Caller>
void contention(benchmark::State& state, Arena& arena, const OpenFixture& open) {
  const bool first = state.thread_index() == 0;
  if (first && !set_up(state, arena, open, static_cast<std::size_t>(state.max_iterations))) return;
  Caller caller;
  std::size_t i = 0;
  std::int64_t wins = 0;
  std::int64_t wrong = 0;
  for ([[maybe_unused]] auto _ : state) {
    auto& target = arena.target<typename Caller::Target>();
    const Claim claim = caller.claim(target, arena.keys[i++]);
    wins += claim == Claim::won ? 1 : 0;
    wrong += claim == Claim::won || claim == Claim::in_progress ? 0 : 1;
  }
  finish(state, wrong, "a claim was neither given nor turned away");
  // The last to come back counts.
  arena.wins += wins;
  if (arena.threads_left.fetch_sub(1) == 1 && arena.wins != state.iterations())
    state.SkipWithError("not exactly one winner to each key");
  state.counters["won"] = benchmark::Counter(static_cast<double>(wins));
  if (first) tear_down(arena);
}

template <class Caller>
void register_scenarios(const std::string& store, const OpenFixture& open) {
  const auto add = [&](const char* scenario, auto body) {
    auto arena = std::make_shared<Arena>();
    register_threaded(std::string(Caller::kName) + "/" + scenario + "/" + store,
                      [arena, open, body](benchmark::State& state) { body(state, *arena, open); });
  };
  add("claim_unique",
      [](auto& state, auto& arena, auto& how) { unique<Caller>(state, arena, how, false); });
  add("claim_complete",
      [](auto& state, auto& arena, auto& how) { unique<Caller>(state, arena, how, true); });
  add("replay_uniform",
      [](auto& state, auto& arena, auto& how) { replay<Caller>(state, arena, how, kReplayKeys); });
  add("replay_hot",
      [](auto& state, auto& arena, auto& how) { replay<Caller>(state, arena, how, 1); });
  add("contention",
      [](auto& state, auto& arena, auto& how) { contention<Caller>(state, arena, how); });
}

}  // namespace

void register_store_benchmarks() {
  for (const Backend& backend : backends()) {
    std::vector<std::string> variants = backend.variants;
    if (variants.empty()) variants.emplace_back();
    for (const std::string& variant : variants) {
      const std::string name = variant.empty() ? backend.name : backend.name + "-" + variant;
      const OpenFixture open = [backend = backend.name, variant] {
        OpenOptions options;
        options.clock = &system_clock();
        return make_fixture(backend, variant, options);
      };
      register_scenarios<StoreCaller>(name, open);
      register_scenarios<ServiceCaller>(name, open);
    }
  }
}

}  // namespace idem::bench
