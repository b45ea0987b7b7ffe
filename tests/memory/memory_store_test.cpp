// What one thread sees of the memory store: the contract of store.hpp, times, bounds, fork.
#include <gmock/gmock.h>
#include <sys/wait.h>
#include <unistd.h>

#include <set>

#include "idem/backend.hpp"
#include "memory_test_support.hpp"

namespace idem {
Backend memory_backend();
}

namespace idem::memory_test {
namespace {

class MemoryStoreTest : public ::testing::Test {
 protected:
  [[nodiscard]] MemoryOptions options() {
    MemoryOptions made;
    made.clock = &clock;
    return made;
  }
  VirtualClock clock;
  MemoryStore store{options()};
};

TEST_F(MemoryStoreTest, InsertWritesOnceAndThenTellsWhatStands) {
  Draft draft = claim(1);
  draft.request_hash = Fingerprint::of_bytes("body");
  const Answer first = insert(store, {"acme", "pay", "k"}, draft);
  ASSERT_TRUE(written(first));
  EXPECT_EQ(first.held.version,
            static_cast<std::uint64_t>(kVirtualStart.time_since_epoch().count()));
  EXPECT_EQ(first.held.fence, first.held.version);
  EXPECT_EQ(first.held.lease_until, kVirtualStart + 30s);
  EXPECT_EQ(first.held.expires_at, kVirtualStart + 60s);
  EXPECT_EQ(first.held.create_time, kVirtualStart);

  clock.advance(1s);
  const Answer second = insert(store, {"acme", "pay", "k"}, claim(2));
  ASSERT_TRUE(stands(second));
  EXPECT_EQ(second.held, first.held);
  EXPECT_EQ(second.now, kVirtualStart + 1s);
  EXPECT_EQ(load(store, {"acme", "pay", "k"}).held, first.held);
}

// Whatever shape the record has, whatever the answer held before, alone and in a batch.
TEST_F(MemoryStoreTest, AnAnswerThatIsUsedAgainSaysWhatANewOneDoes) {
  std::vector<Key> keys;
  for (const std::size_t key_bytes : {1, 15, 16, 17, 36, 48, 49, 128}) {
    char letter = 'A';
    for (const std::size_t result_bytes : {0, 5, 15, 16, 33, 48, 49, 63, 64, 65, 100, 600, 5000}) {
      for (const char* tenant : {"", "acme"}) {
        const Key key(tenant, "", std::string(key_bytes, letter));
        const Answer claimed = insert(store, key, claim(1, 30s, 24h));
        ASSERT_TRUE(written(claimed));
        keys.push_back(key);
        if (letter == 'A') continue;  // one stays as it is
        const std::string result(result_bytes, letter);
        ASSERT_TRUE(
            written(replace(store, key, claimed.held.version, success(claimed.held, result))));
        EXPECT_EQ(load(store, key).held.result, result);
      }
      ++letter;
    }
  }
  keys.emplace_back("nobody's key, of a usual size");
  std::vector<Load> batch(2);
  Load again;
  for (std::size_t step : {1, 7, 50}) {  // so that each shape follows others
    for (std::size_t i = 0, at = 0; i < keys.size(); ++i, at = (at + step) % keys.size()) {
      const Answer fresh = load(store, keys[at]);
      again.key = keys[at];
      store.load({&again, 1});
      for (Load& op : batch) op.key = keys[at];
      store.load(batch);
      for (const Answer* answer : {&again.answer, &batch[0].answer, &batch[1].answer}) {
        ASSERT_EQ(answer->state, fresh.state);
        ASSERT_EQ(answer->now, fresh.now);
        if (stands(fresh)) {
          ASSERT_EQ(answer->held, fresh.held);
        }
      }
    }
  }
}

TEST_F(MemoryStoreTest, ReplaceNeedsTheExpectedVersion) {
  const Answer claimed = insert(store, "k", claim(1));
  clock.advance(1s);
  const Answer done = replace(store, "k", claimed.held.version, success(claimed.held, "R"));
  ASSERT_TRUE(written(done));
  EXPECT_GT(done.held.version, claimed.held.version);
  EXPECT_EQ(done.held.fence, claimed.held.fence);
  EXPECT_EQ(done.held.result, "R");
  EXPECT_EQ(done.held.create_time, kVirtualStart);
  EXPECT_EQ(done.held.update_time, kVirtualStart + 1s);
  EXPECT_EQ(done.held.lease_until, Time{});

  const Answer stale = replace(store, "k", claimed.held.version, success(claimed.held, "S"));
  ASSERT_TRUE(stands(stale));
  EXPECT_EQ(stale.held, done.held);
  EXPECT_TRUE(absent(replace(store, "other", 1, claim(1))));
}

// The dead are not resurrected: a late complete must not revive an expired record.
TEST_F(MemoryStoreTest, AnExpiredRecordIsReplacedOnlyByAFreshDraft) {
  const Answer claimed = insert(store, "k", claim(1, 1s, 2s));
  clock.advance(2s);
  EXPECT_TRUE(stands(insert(store, "k", claim(2))));
  EXPECT_TRUE(stands(load(store, "k")));
  EXPECT_TRUE(stands(replace(store, "k", claimed.held.version, success(claimed.held, "late"))));
  const Answer fresh = replace(store, "k", claimed.held.version, claim(2));
  ASSERT_TRUE(written(fresh));
  EXPECT_EQ(fresh.held.create_time, kVirtualStart + 2s);
  EXPECT_GT(fresh.held.fence, claimed.held.fence);
}

TEST_F(MemoryStoreTest, RemoveNeedsTheExpectedVersion) {
  const Answer claimed = insert(store, "k", claim(1));
  EXPECT_TRUE(stands(remove(store, "k", claimed.held.version + 1)));
  EXPECT_TRUE(written(remove(store, "k", claimed.held.version)));
  EXPECT_TRUE(absent(remove(store, "k", claimed.held.version)));
  EXPECT_TRUE(absent(load(store, "k")));
}

// Fences must grow over incarnations, even if the clock stands still.
TEST_F(MemoryStoreTest, VersionsGrowOverRemoveAndInsertAgain) {
  std::uint64_t last = 0;
  for (int i = 0; i < 1000; ++i) {
    const Answer claimed = insert(store, "k", claim(1));
    ASSERT_TRUE(written(claimed));
    ASSERT_GT(claimed.held.fence, last);
    const Answer renewed = replace(store, "k", claimed.held.version, claim(1));
    ASSERT_GT(renewed.held.version, claimed.held.version);
    last = renewed.held.version;
    ASSERT_TRUE(written(remove(store, "k", last)));
  }
}

TEST_F(MemoryStoreTest, ABatchTakesEffectInInputOrder) {
  const Key a("a");
  const Key b("b");
  std::vector<Insert> ops;
  for (int i = 0; i < 40; ++i)
    ops.push_back({i % 2 == 0 ? a : b, claim(static_cast<std::uint8_t>(i)), {}});
  store.insert(ops);
  for (int i = 0; i < 40; ++i) {
    EXPECT_EQ(written(ops[static_cast<std::size_t>(i)].answer), i < 2);
    EXPECT_EQ(ops[static_cast<std::size_t>(i)].answer.held.owner,
              owner(static_cast<std::uint8_t>(i % 2)));
  }
}

TEST_F(MemoryStoreTest, IdentityIsTheTripleByteForByte) {
  const std::vector<Key> keys{{"", "", "abc"},  {"", "a", "bc"},  {"", "ab", "c"}, {"a", "", "bc"},
                              {"a", "b", "c"},  {"ab", "", "c"},  {"", "", "ABC"}, {"", "", "abc "},
                              {"abc", "", "x"}, {"", "abc", "x"}, {"", "", "x"}};
  for (std::size_t i = 0; i < keys.size(); ++i)
    EXPECT_TRUE(written(insert(store, keys[i], claim(static_cast<std::uint8_t>(i)))));
  for (std::size_t i = 0; i < keys.size(); ++i)
    EXPECT_EQ(load(store, keys[i]).held.owner, owner(static_cast<std::uint8_t>(i)));
}

TEST_F(MemoryStoreTest, ResultsOfEverySizeComeBackByteForByte) {
  const std::string tenant(64, 't');
  const std::string biz(32, 'b');
  for (const std::size_t size : {0,   1,   11,  12,  13,  47,  48,   49,    100,     143,
                                 144, 145, 300, 367, 368, 369, 1000, 65536, 1 << 20, (64 << 20)}) {
    if (kSanitized && size > (1 << 20)) continue;
    for (const Key& key :
         {Key(name("k", size)), Key(tenant, biz, name(std::string(110, 'k'), size))}) {
      std::string bytes(size, '\0');
      for (std::size_t i = 0; i < size; ++i) bytes[i] = static_cast<char>(i * 31 + size);
      const Answer claimed = insert(store, key, claim(1));
      ASSERT_TRUE(written(claimed));
      ASSERT_TRUE(written(replace(store, key, claimed.held.version, success(claimed.held, bytes))));
      ASSERT_TRUE(load(store, key).held.result == bytes) << size;
    }
  }
  const std::string too_large((64U << 20) + 1, 'x');
  const Answer claimed = insert(store, "big", claim(1));
  const Answer refused =
      replace(store, "big", claimed.held.version, success(claimed.held, too_large));
  EXPECT_EQ(refused.error.code, errc::too_large);
  EXPECT_EQ(load(store, "big").held, claimed.held);
}

TEST_F(MemoryStoreTest, LifetimesOfAHundredYearsAndOfAllTimeAreKept) {
  ASSERT_TRUE(written(insert(store, "century", claim(1, kDurationMax, kDurationMax))));
  ASSERT_TRUE(written(insert(store, "ever", claim(1, Micros::max(), Micros::max()))));
  clock.advance(std::chrono::hours(24 * 36524));
  EXPECT_EQ(store.sweep(100).value(), 0U);
  const Answer held = load(store, "century");
  ASSERT_TRUE(stands(held));
  EXPECT_FALSE(held.held.expired(held.now));
  clock.advance(std::chrono::hours(24));
  EXPECT_EQ(store.sweep(100).value(), 1U);
  EXPECT_TRUE(absent(load(store, "century")));
  EXPECT_TRUE(stands(load(store, "ever")));
}

TEST_F(MemoryStoreTest, SweepFreesExactlyWhatIsExpiredUpToItsLimit) {
  for (std::size_t i = 0; i < 300; ++i) insert(store, name("short", i), claim(1, 1ms, 10ms));
  for (std::size_t i = 0; i < 50; ++i) insert(store, name("long", i), claim(1, 1s, 10001us));
  clock.advance(9999us);
  EXPECT_EQ(store.sweep(1000).value(), 0U);
  clock.advance(1us);
  EXPECT_EQ(store.sweep(100).value(), 100U);
  EXPECT_EQ(store.sweep(0).value(), 0U);
  EXPECT_EQ(store.sweep(1000).value(), 200U);
  EXPECT_EQ(store.sweep(1000).value(), 0U);
  EXPECT_EQ(store.gauges().records, 50U);
  clock.advance(1us);
  EXPECT_EQ(store.sweep(1000).value(), 50U);
}

TEST_F(MemoryStoreTest, ARenewedRecordOutlivesItsFirstExpiry) {
  const Answer claimed = insert(store, "k", claim(1, 1s, 2s));
  clock.advance(1s);
  const Answer renewed = replace(store, "k", claimed.held.version, claim(1, 10s, 20s));
  clock.advance(2s);
  EXPECT_EQ(store.sweep(10).value(), 0U);
  EXPECT_EQ(load(store, "k").held, renewed.held);
  clock.advance(18s);
  EXPECT_EQ(store.sweep(10).value(), 1U);
}

TEST_F(MemoryStoreTest, TheTimerOfTheClockSweeps) {
  MemoryOptions with_timer = options();
  with_timer.sweep_every = 1s;
  MemoryStore swept(with_timer);
  for (std::size_t i = 0; i < 100; ++i) insert(swept, name("k", i), claim(1, 1ms, 1500ms));
  clock.advance(1s);
  EXPECT_EQ(swept.gauges().records, 100U);
  clock.advance(1s);
  EXPECT_EQ(swept.gauges().records, 0U);
}

TEST_F(MemoryStoreTest, StatsCountByStatus) {
  for (std::size_t i = 0; i < 30; ++i) {
    const Answer a = insert(store, name("k", i), claim(1, 1s, i < 5 ? Micros(1s) : Micros(60s)));
    if (i >= 10) replace(store, name("k", i), a.held.version, success(a.held, "R"));
  }
  clock.advance(2s);
  const StoreStats stats = store.stats().value();
  EXPECT_EQ(stats.processing, 10U);
  EXPECT_EQ(stats.success, 20U);
  EXPECT_EQ(stats.failed, 0U);
  EXPECT_EQ(stats.expired, 5U);
  EXPECT_EQ(stats.bytes, store.gauges().bytes);
  EXPECT_EQ(stats.records(), store.gauges().records);
}

// A full store refuses: it evicts nothing live, frees the expired first, and still answers.
TEST_F(MemoryStoreTest, TheEntryBoundIsExact) {
  MemoryOptions bounded = options();
  bounded.max_entries = 100;
  MemoryStore small(bounded);
  for (std::size_t i = 0; i < 100; ++i)
    ASSERT_TRUE(written(insert(small, name("k", i), claim(1, 1s, i < 10 ? 5s : 60s))));
  const Answer refused = insert(small, "one more", claim(1));
  ASSERT_EQ(refused.state, Answer::State::failed);
  EXPECT_EQ(refused.error.code, errc::capacity);
  EXPECT_TRUE(stands(insert(small, "k-50", claim(2))));
  const Answer held = load(small, "k-50");
  EXPECT_TRUE(written(replace(small, "k-50", held.held.version, success(held.held, "R"))));

  clock.advance(5s);
  for (std::size_t i = 0; i < 10; ++i)
    EXPECT_TRUE(written(insert(small, name("new", i), claim(1))));
  EXPECT_EQ(insert(small, "again one more", claim(1)).error.code, errc::capacity);
  for (std::size_t i = 10; i < 100; ++i) EXPECT_TRUE(stands(load(small, name("k", i)))) << i;
  ASSERT_TRUE(written(remove(small, "k-11", load(small, "k-11").held.version)));
  EXPECT_TRUE(written(insert(small, "again one more", claim(1))));
}

TEST_F(MemoryStoreTest, TheByteBoundCountsResults) {
  MemoryOptions bounded = options();
  bounded.max_bytes = 10'000;
  MemoryStore small(bounded);
  const Answer a = insert(small, "a", claim(1));
  ASSERT_TRUE(
      written(replace(small, "a", a.held.version, success(a.held, std::string(9'000, 'x')))));
  const Answer b = insert(small, "b", claim(1));
  const Answer refused =
      replace(small, "b", b.held.version, success(b.held, std::string(1'000, 'y')));
  EXPECT_EQ(refused.error.code, errc::capacity);
  EXPECT_EQ(load(small, "b").held, b.held);
  EXPECT_TRUE(written(remove(small, "a", load(small, "a").held.version)));
  EXPECT_TRUE(
      written(replace(small, "b", b.held.version, success(b.held, std::string(1'000, 'y')))));
}

TEST_F(MemoryStoreTest, ListPagesHoldEachRecordOnce) {
  std::set<std::string> expected;
  for (std::size_t i = 0; i < 1000; ++i) {
    insert(store, Key("t", i % 2 == 0 ? "pay" : "refund", name("k", i)), claim(1));
    if (i % 2 == 0) expected.insert(name("k", i));
  }
  insert(store, {"t", "pay", "expired"}, claim(1, 1ms, 1ms));
  clock.advance(1ms);
  ListQuery query;
  query.biz_type = "pay";
  query.limit = 7;
  std::multiset<std::string> listed;
  do {
    const Page page = store.list(query).value();
    EXPECT_LE(page.items.size(), 7U);
    for (const Listed& item : page.items) listed.insert(item.key.key);
    query.cursor = page.cursor;
  } while (!query.cursor.empty());
  EXPECT_EQ(listed, std::multiset<std::string>(expected.begin(), expected.end()));
  query.cursor = "nonsense";
  EXPECT_EQ(store.list(query).error().code, errc::invalid_argument);
}

TEST_F(MemoryStoreTest, ListFindsLapsedClaims) {
  insert(store, "lapsed", claim(1, 1s, 1h));
  clock.advance(5s);
  insert(store, "alive", claim(1, 100s, 1h));
  insert(store, "just lapsed", claim(1, 1s, 1h));
  clock.advance(5s);
  ListQuery query;
  query.lapsed_for = 10s;
  const Page page = store.list(query).value();
  ASSERT_EQ(page.items.size(), 1U);
  EXPECT_EQ(page.items[0].key.key, "lapsed");
  EXPECT_TRUE(page.cursor.empty());
}

TEST_F(MemoryStoreTest, AWatcherIsCalledOnceAfterAChangeIsVisible) {
  const Answer claimed = insert(store, "k", claim(1));
  int calls = 0;
  Status seen = Status::processing;
  ASSERT_TRUE(store.watch(Key("k"), [&] {
    ++calls;
    seen = load(store, "k").held.status;  // may call the store
  }));
  EXPECT_TRUE(stands(load(store, "k")));
  EXPECT_EQ(calls, 0);
  const Answer done = replace(store, "k", claimed.held.version, success(claimed.held, "R"));
  EXPECT_EQ(calls, 1);
  EXPECT_EQ(seen, Status::success);
  ASSERT_TRUE(store.watch(Key("k"), [&] { ++calls; }));
  remove(store, "k", done.held.version);
  EXPECT_EQ(calls, 2);
}

// Waiters that gave up leave callbacks behind: they must not pile up.
TEST_F(MemoryStoreTest, CallbacksOfAKeyThatNeverChangesAreBounded) {
  std::size_t calls = 0;
  std::size_t most = 0;
  const std::size_t watches = scaled(1'000'000, 4);
  for (std::size_t i = 0; i < watches; ++i) {
    ASSERT_TRUE(store.watch(Key("never"), [&] { ++calls; }));
    if (i % 1024 == 1023) most = std::max<std::size_t>(most, store.gauges().watchers);
  }
  EXPECT_LE(store.gauges().watchers, 65536U);
  EXPECT_LE(most, 65536U);
  EXPECT_EQ(calls + store.gauges().watchers, watches);
}

TEST_F(MemoryStoreTest, AForkedChildGetsWrongProcess) {
  insert(store, "k", claim(1));
  const pid_t child = fork();
  if (child == 0) {
    bool right = insert(store, "c", claim(1)).error.code == errc::wrong_process &&
                 load(store, "k").error.code == errc::wrong_process &&
                 remove(store, "k", 1).error.code == errc::wrong_process &&
                 replace(store, "k", 1, claim(1)).error.code == errc::wrong_process &&
                 store.sweep(1).error().code == errc::wrong_process &&
                 store.stats().error().code == errc::wrong_process &&
                 store.list({}).error().code == errc::wrong_process &&
                 !store.watch(Key("k"), [] {});
    MemoryStore own(options());
    right = right && written(insert(own, "c", claim(1)));
    _exit(right ? 0 : 1);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
  EXPECT_TRUE(stands(load(store, "k")));
}

TEST_F(MemoryStoreTest, TheUrlSetsShardsAndBounds) {
  const Backend backend = memory_backend();
  const OpenOptions open{&clock};
  const auto opened = [&](std::string_view url) {
    return backend.open(StoreUrl::parse(url).value(), open);
  };
  const StorePtr small = opened("memory:?shards=2&max_entries=1&max_bytes=1MiB").value();
  EXPECT_TRUE(written(insert(*small, "a", claim(1))));
  EXPECT_EQ(insert(*small, "b", claim(1)).error.code, errc::capacity);
  EXPECT_EQ(opened("memory:?shards=3").error().code, errc::invalid_argument);
  EXPECT_EQ(opened("memory:?shard=4").error().code, errc::invalid_argument);
  EXPECT_EQ(opened("memory:name").error().code, errc::invalid_argument);
  for (const std::string& variant : backend.variants)
    EXPECT_TRUE(written(insert(*backend.fixture(variant, open).value().store, "a", claim(1))));
}

}  // namespace
}  // namespace idem::memory_test
