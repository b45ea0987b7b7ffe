// What many threads see of the memory store: one winner, nothing lost, nothing torn.
#include <algorithm>
#include <array>
#include <atomic>
#include <map>
#include <mutex>
#include <random>
#include <set>

#include "memory_test_support.hpp"

namespace idem::memory_test {
namespace {

class MemoryThreadsTest : public ::testing::Test {
 protected:
  [[nodiscard]] MemoryOptions options(std::size_t shards = 64) {
    MemoryOptions made;
    made.clock = &clock;
    made.shards = shards;
    return made;
  }
  VirtualClock clock;
};

// H22: two winners for one key while the index grows under the inserts.
TEST_F(MemoryThreadsTest, H22EachKeyHasOneWinnerDuringGrowthFromAnyCapacity) {
  const std::size_t keys = scaled(200'000);
  for (const std::uint64_t capacity : {0U, 1U, 3U, 10'000U}) {
    for (const std::size_t shards : {1U, 64U}) {
      MemoryOptions with = options(shards);
      with.initial_capacity = capacity;
      MemoryStore store(with);
      std::atomic<std::size_t> won{0};
      in_threads(8, [&](std::size_t t) {
        // Threads t and t ^ 1 offer the same quarter, one of them backwards.
        const std::size_t first = keys / 4 * (t / 2);
        std::size_t mine = 0;
        for (std::size_t i = 0; i < keys / 4; ++i) {
          const std::size_t k = first + (t % 2 == 0 ? i : keys / 4 - 1 - i);
          mine +=
              written(insert(store, name("key", k), claim(static_cast<std::uint8_t>(t)))) ? 1 : 0;
        }
        won += mine;
      });
      EXPECT_EQ(won, keys / 4 * 4) << capacity << " " << shards;
      std::size_t found = 0;
      for (std::size_t k = 0; k < keys; ++k) found += stands(load(store, name("key", k))) ? 1 : 0;
      EXPECT_EQ(found, keys / 4 * 4);
      EXPECT_EQ(store.gauges().records, keys / 4 * 4);
    }
  }
}

// All threads claim the same keys in the same order, in batches and singly.
TEST_F(MemoryThreadsTest, ContendedClaimsHaveOneWinnerPerKey) {
  const std::size_t keys = scaled(100'000);
  for (const std::size_t threads : {2U, 8U}) {
    MemoryStore store(options());
    std::atomic<std::size_t> won{0};
    in_threads(threads, [&](std::size_t t) {
      std::vector<std::string> names(16);
      std::size_t mine = 0;
      for (std::size_t k = 0; k + 16 <= keys; k += 16) {
        std::vector<Insert> ops(16);
        for (std::size_t i = 0; i < 16; ++i) {
          names[i] = name("key", k + i);
          ops[i].key.key = names[i];
          ops[i].draft = claim(static_cast<std::uint8_t>(t));
        }
        if (t % 2 == 0)
          store.insert(ops);
        else
          for (Insert& op : ops) store.insert({&op, 1});
        for (const Insert& op : ops) mine += written(op.answer) ? 1 : 0;
      }
      won += mine;
    });
    EXPECT_EQ(won, keys / 16 * 16);
  }
}

// Claims, completions, expiry, removal and takeover of few keys by many threads. Every grant of a
// key must have a fence of its own, grown over every earlier one that was seen; at most one
// completion per fence may take; and a completion by an owner that was taken over must not.
TEST_F(MemoryThreadsTest, H22FencesAreUniqueUnderClaimCompleteExpireAndRemove) {
  constexpr std::size_t kKeys = 40;
  const std::size_t rounds = scaled(60'000, 15);
  for (const std::size_t shards : {1U, 64U}) {
    MemoryStore store(options(shards));
    std::vector<std::mutex> guards(kKeys);
    std::vector<std::set<std::uint64_t>> fences(kKeys);
    std::atomic<std::size_t> granted{0};
    std::atomic<std::size_t> completed{0};
    std::atomic<std::size_t> twice{0};
    std::atomic<std::size_t> backwards{0};
    in_threads(4, [&](std::size_t t) {
      std::mt19937 random(static_cast<unsigned>(t + 1));
      for (std::size_t i = 0; i < rounds; ++i) {
        // The smaller keys are the hotter ones.
        const std::size_t k = std::min(random() % kKeys, random() % kKeys);
        const Key key(name("key", k));
        std::uint64_t known = 0;
        {
          const std::lock_guard<std::mutex> guard(guards[k]);
          if (!fences[k].empty()) known = *fences[k].rbegin();
        }
        Answer answer;
        if (claim_or_take_over(store, key, claim(static_cast<std::uint8_t>(t), 1ms, 2ms), answer)) {
          ++granted;
          if (answer.held.fence <= known) ++backwards;
          {
            const std::lock_guard<std::mutex> guard(guards[k]);
            if (!fences[k].insert(answer.held.fence).second) ++twice;
          }
          const std::string result = name("result", answer.held.fence);
          if (random() % 4 == 0) {
            remove(store, key, answer.held.version);
          } else {
            const Answer done =
                replace(store, key, answer.held.version, success(answer.held, result, 1ms));
            if (written(done)) ++completed;
          }
        }
        if (random() % 64 == 0) clock.advance(1ms);
        if (random() % 64 == 0) (void)store.sweep(10);
        const Answer seen = load(store, key);
        if (stands(seen) && seen.held.status == Status::success) {
          EXPECT_EQ(seen.held.result, name("result", seen.held.fence));
        }
      }
    });
    EXPECT_EQ(twice, 0U);
    EXPECT_EQ(backwards, 0U);
    EXPECT_GT(granted, rounds / 100);
    EXPECT_GT(completed, rounds / 200);
    clock.advance(1s);
    while (store.sweep(100).value() != 0) {
    }
    EXPECT_EQ(store.gauges().records, 0U);
    EXPECT_EQ(store.gauges().limbo, 0U);
  }
}

// Growth and expiry at once: each key is offered by two threads while records die and the index
// grows. A key may be won again, but by the store's own times never before its record expired.
TEST_F(MemoryThreadsTest, NoKeyIsWonAgainBeforeItsRecordExpired) {
  struct Grant {
    std::uint64_t version;
    Time from;
    Time until;
  };
  MemoryStore store(options(2));
  const std::size_t keys = scaled(100'000);
  std::array<std::vector<std::pair<std::size_t, Grant>>, 4> grants;
  in_threads(4, [&](std::size_t t) {
    const std::size_t half = keys / 2 * (t / 2);
    for (std::size_t i = 0; i < keys / 2; ++i) {
      const std::size_t k = half + (t % 2 == 0 ? i : (i + 50) % (keys / 2));
      const Answer a = insert(store, name("key", k), claim(static_cast<std::uint8_t>(t), 1ms, 2ms));
      if (written(a)) grants[t].push_back({k, {a.held.version, a.now, a.held.expires_at}});
      if (i % 500 == 0) clock.advance(500us);
      if (i % 1'000 == 0) (void)store.sweep(100);
    }
  });
  std::map<std::size_t, std::vector<Grant>> by_key;
  for (const auto& of_thread : grants)
    for (const auto& [k, grant] : of_thread) by_key[k].push_back(grant);
  EXPECT_EQ(by_key.size(), keys / 2 * 2);
  for (auto& [k, list] : by_key) {
    std::sort(list.begin(), list.end(),
              [](const Grant& a, const Grant& b) { return a.version < b.version; });
    for (std::size_t i = 1; i < list.size(); ++i) {
      EXPECT_LT(list[i - 1].version, list[i].version) << k;
      EXPECT_LE(list[i - 1].until, list[i].from) << k;
    }
  }
}

// The old owner wakes after a takeover: its version is not the record's any more.
TEST_F(MemoryThreadsTest, OfManyRacingReplacementsOfOneVersionOneIsWritten) {
  MemoryStore store(options(1));
  Answer held = insert(store, "k", claim(1));
  const std::size_t rounds = scaled(3'000, 10);
  for (std::size_t round = 0; round < rounds; ++round) {
    std::atomic<int> won{0};
    in_threads(3, [&](std::size_t t) {
      const std::string result = name("r", t);
      const Draft draft = success(held.held, result);
      if (t == 2) {
        won += written(remove(store, "k", held.held.version)) ? 1 : 0;
      } else {
        won += written(replace(store, "k", held.held.version, draft)) ? 1 : 0;
      }
    });
    ASSERT_EQ(won, 1);
    const Answer now = load(store, "k");
    held = absent(now) ? insert(store, "k", claim(1)) : now;
  }
}

// The first owner's lease ends, another takes over and completes; then the first one wakes.
TEST_F(MemoryThreadsTest, AnOldOwnerFindsTheNewOnesResult) {
  MemoryStore store(options(1));
  for (std::size_t i = 0; i < scaled(20'000); ++i) {
    const std::string key = name("k", i);
    const Answer first = insert(store, key, claim(1, 1ms, 1s));
    std::atomic<int> completed{0};
    in_threads(2, [&](std::size_t t) {
      if (t == 0) {  // late, with the version it knows
        completed += written(replace(store, key, first.held.version, success(first.held, "old")));
        return;
      }
      const Answer over = replace(store, key, first.held.version, claim(2, 1s, 1s));
      if (!written(over)) return;
      completed += written(replace(store, key, over.held.version, success(over.held, "new")));
    });
    ASSERT_EQ(completed, 1);
    const Answer now = load(store, key);
    ASSERT_EQ(now.held.result, now.held.owner == owner(1) ? "old" : "new");
    if (i % 64 == 0) clock.advance(1ms);
  }
}

// A replay must never see half a record, or memory that was reused.
TEST_F(MemoryThreadsTest, ReadersNeverSeeATornRecord) {
  MemoryStore store(options(1));
  constexpr std::size_t kKeys = 8;
  Draft first = claim(0);
  first.attempt = 0;
  for (std::size_t k = 0; k < kKeys; ++k) insert(store, name("k", k), first);
  const std::size_t rounds = scaled(100'000, 20);
  std::atomic<bool> stop{false};
  std::atomic<std::size_t> torn{0};
  std::atomic<std::size_t> missing{0};
  std::thread reader([&] {
    Load op;
    while (!stop) {
      for (std::size_t k = 0; k < kKeys; ++k) {
        const std::string key = name("k", k);
        op.key = {{}, {}, key};
        store.load({&op, 1});
        if (op.answer.state != Answer::State::stands) {
          ++missing;
          continue;
        }
        const Record& held = op.answer.held;
        const std::uint8_t n = held.owner.bytes[0];
        const bool whole =
            held.owner == owner(n) && held.request_hash.bytes[31] == n &&
            (held.result.empty() || held.result == std::string(n * 7U, static_cast<char>(n)));
        if (!whole || held.attempt % 256 != n) ++torn;
      }
    }
  });
  in_threads(2, [&](std::size_t t) {
    for (std::size_t i = 0; i < rounds; ++i) {
      const std::string key = name("k", (i * 2 + t) % kKeys);
      const auto n = static_cast<std::uint8_t>(i);
      const std::string result(n * 7U, static_cast<char>(n));
      Draft draft = claim(n);
      draft.request_hash.bytes.fill(n);
      draft.attempt = n;
      draft.result = result;
      const Answer held = load(store, key);
      replace(store, key, held.held.version, draft);
    }
  });
  stop = true;
  reader.join();
  EXPECT_EQ(torn, 0U);
  EXPECT_EQ(missing, 0U);  // a replacement leaves no gap
}

TEST_F(MemoryThreadsTest, AListWhileTheStoreGrowsHoldsEachSteadyRecordOnce) {
  MemoryStore store(options(2));
  constexpr std::size_t kSteady = 500;
  for (std::size_t i = 0; i < kSteady; ++i) insert(store, name("steady", i), claim(1));
  std::atomic<bool> stop{false};
  const std::size_t more = scaled(100'000);
  std::thread grower([&] {
    for (std::size_t i = 0; i < more && !stop; ++i) {
      const Answer a = insert(store, name("new", i), claim(2));
      if (i % 3 == 0) remove(store, name("new", i), a.held.version);
      const Key steady(name("steady", i % kSteady));
      replace(store, steady, load(store, steady).held.version, claim(3));
    }
  });
  for (int pass = 0; pass < 5; ++pass) {
    std::map<std::string, int> listed;
    ListQuery query;
    query.limit = 50;
    do {
      const Page page = store.list(query).value();
      for (const Listed& item : page.items) ++listed[item.key.key];
      query.cursor = page.cursor;
    } while (!query.cursor.empty());
    for (std::size_t i = 0; i < kSteady; ++i) EXPECT_EQ(listed[name("steady", i)], 1);
    for (const auto& [key, times] : listed)
      EXPECT_TRUE(times == 1 || !key.starts_with("steady")) << key;
  }
  stop = true;
  grower.join();
}

// H08: watch, then load, misses nothing.
TEST_F(MemoryThreadsTest, NoChangeIsMissedByWhoWatchesAndThenLoads) {
  MemoryStore store(options(1));
  const std::size_t rounds = scaled(3'000, 10);
  for (std::size_t i = 0; i < rounds; ++i) {
    const Key key(name("k", i));
    const Answer held = insert(store, key, claim(1));
    std::atomic<bool> called{false};
    bool seen = false;
    std::thread waiter([&] {
      ASSERT_TRUE(store.watch(key, [&] { called = true; }));
      seen = load(store, key).held.status == Status::success;
    });
    replace(store, key, held.held.version, success(held.held, "R"));
    waiter.join();
    EXPECT_TRUE(seen || called);
    // Whoever was left behind is called before the flag goes away.
    replace(store, key, load(store, key).held.version, claim(2));
    EXPECT_TRUE(called);
  }
}

}  // namespace
}  // namespace idem::memory_test
