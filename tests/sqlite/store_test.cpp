// Records in and out: byte-exact, independent of their neighbours, seen at once.
#include <gmock/gmock.h>

#include <set>
#include <thread>
#include <vector>

#include "helpers.hpp"

namespace idem {
namespace {

class SqliteStoreTest : public testing::TestWithParam<std::string> {
 protected:
  StorePtr open() {
    return open_or_die(GetParam() == "memory" ? ":memory:" : directory_.file(), &clock_);
  }

  VirtualClock clock_;
  TempDir directory_;
  StorePtr store_ = open();
};

INSTANTIATE_TEST_SUITE_P(Variants, SqliteStoreTest, testing::Values("file", "memory"),
                         [](const auto& tested) { return tested.param; });

TEST_P(SqliteStoreTest, WritesAndReadsEveryField) {
  const Key key("tenant", "pay", "k1");
  Draft draft = claim_draft(seconds(30));
  const Answer claimed = insert(*store_, key, draft);
  ASSERT_EQ(word(claimed), "written");
  EXPECT_EQ(claimed.now, clock_.now());
  EXPECT_EQ(claimed.held.lease_until, clock_.now() + seconds(30));
  EXPECT_EQ(claimed.held.fence, claimed.held.version);

  clock_.advance(seconds(5));
  Draft failure = success_draft(claimed.held, std::string_view("no\0funds", 8));
  failure.status = Status::failed;
  failure.fail_kind = FailKind::retryable;
  failure.retry_after = seconds(7);
  failure.attempt = 3;
  failure.tombstone = true;
  const Answer written = replace(*store_, key, claimed.held.version, failure);
  ASSERT_EQ(word(written), "written");
  EXPECT_EQ(written.held.create_time, clock_.now() - seconds(5)) << "not fresh: it stays";
  EXPECT_EQ(written.held.retry_at, clock_.now() + seconds(7));
  EXPECT_EQ(written.held.lease_until, Time{});
  EXPECT_EQ(written.held.fence, claimed.held.fence);
  EXPECT_GT(written.held.version, claimed.held.version);

  const Answer loaded = load(*store_, key);
  EXPECT_EQ(word(loaded), "stands");
  EXPECT_EQ(loaded.held, written.held);
}

TEST_P(SqliteStoreTest, AConditionThatDoesNotHoldTellsWhatStands) {
  const Key key("k");
  EXPECT_EQ(word(replace(*store_, key, 1, claim_draft())), "absent");
  EXPECT_EQ(word(remove(*store_, key, 1)), "absent");
  const Answer first = insert(*store_, key);
  EXPECT_EQ(word(insert(*store_, key)), "stands");
  const Answer stale = replace(*store_, key, first.held.version - 1, claim_draft());
  EXPECT_EQ(word(stale), "stands");
  EXPECT_EQ(stale.held, first.held);
  EXPECT_EQ(word(remove(*store_, key, first.held.version + 1)), "stands");
  EXPECT_EQ(word(remove(*store_, key, first.held.version)), "written");
  EXPECT_EQ(word(load(*store_, key)), "absent");
}

// The dead are not resurrected; an expired record still stands until it is replaced.
TEST_P(SqliteStoreTest, AnExpiredRecordIsReplacedOnlyByAFreshDraft) {
  const Key key("k");
  Draft draft = claim_draft();
  draft.keep = seconds(10);
  const Answer first = insert(*store_, key, draft);
  const Draft late = success_draft(first.held, "late");
  clock_.advance(seconds(10));
  EXPECT_EQ(word(insert(*store_, key)), "stands");
  EXPECT_EQ(word(replace(*store_, key, first.held.version, late)), "stands");
  const Answer again = replace(*store_, key, first.held.version, claim_draft());
  EXPECT_EQ(word(again), "written");
  EXPECT_EQ(again.held.create_time, clock_.now());
}

TEST_P(SqliteStoreTest, ItemsOfABatchTakeEffectInOrder) {
  const Key a("a");
  const Key b("b");
  const Draft draft = claim_draft();
  std::vector<Insert> ops = {{a, draft, {}}, {b, draft, {}}, {a, claim_draft(), {}}};
  store_->insert(ops);
  EXPECT_EQ(word(ops[0].answer), "written");
  EXPECT_EQ(word(ops[1].answer), "written");
  EXPECT_EQ(word(ops[2].answer), "stands");
  EXPECT_EQ(ops[2].answer.held, ops[0].answer.held);
  std::vector<Insert> again = {{a, draft, {}}, {Key("c"), draft, {}}, {b, draft, {}}};
  const Key c("c");
  again[1].key = c;
  store_->insert(again);
  EXPECT_EQ(word(again[0].answer), "stands");
  EXPECT_EQ(word(again[1].answer), "written");
  EXPECT_EQ(word(again[2].answer), "stands");
}

TEST_P(SqliteStoreTest, OneItemThatIsTooLargeFailsAlone) {
  const std::string big(kSqliteResultBytesMax + 1, 'x');
  Draft large = claim_draft();
  large.result = big;
  const Key a("a");
  const Key b("b");
  const Key c("c");
  std::vector<Insert> ops = {{a, claim_draft(), {}}, {b, large, {}}, {c, claim_draft(), {}}};
  store_->insert(ops);
  EXPECT_EQ(word(ops[0].answer), "written");
  EXPECT_EQ(word(ops[1].answer), "too_large");
  EXPECT_EQ(word(ops[2].answer), "written");
}

// H32: result sizes around page and type boundaries.
TEST_P(SqliteStoreTest, ResultsOfEverySizeComeBackByteForByte) {
  for (const std::size_t size :
       {std::size_t{0}, std::size_t{1}, std::size_t{65'535}, std::size_t{65'536},
        std::size_t{1} << 20, std::size_t{16} << 20}) {
    const Key key("size-" + std::to_string(size));
    std::string result(size, '\0');
    for (std::size_t i = 0; i < size; ++i) result[i] = static_cast<char>(i * 31 + i / 256);
    const Answer claimed = insert(*store_, key);
    ASSERT_EQ(
        word(replace(*store_, key, claimed.held.version, success_draft(claimed.held, result))),
        "written");
    const Answer loaded = load(*store_, key);
    ASSERT_EQ(word(loaded), "stands");
    EXPECT_TRUE(loaded.held.result == result) << size;
  }
}

// H26, H15: nothing is converted, folded, trimmed or run together.
TEST_P(SqliteStoreTest, KeysThatLookAlikeAreDifferentKeys) {
  const std::vector<Key> keys = {{"", "", "00123"},
                                 {"", "", "123"},
                                 {"", "", "1e2"},
                                 {"", "", "100"},
                                 {"", "", "0x10"},
                                 {"", "", "16"},
                                 {"", "", "abc"},
                                 {"", "", "ABC"},
                                 {"", "", "abc "},
                                 {"", "", "\xc3\xa9"},
                                 {"", "", "e"},
                                 {"", "pay", "1"},
                                 {"", "refund", "1"},
                                 {"t", "", "1"},
                                 {"", "t", "1"},
                                 {"", "", "1"},
                                 {"", "", std::string(128, 'k')}};
  for (const Key& key : keys) ASSERT_EQ(word(insert(*store_, key)), "written") << key.key;
  std::set<std::uint64_t> owners;
  const auto page = store_->list({});
  ASSERT_TRUE(page);
  std::set<Key> listed;
  for (const Listed& item : page->items) listed.insert(item.key);
  EXPECT_EQ(listed, std::set<Key>(keys.begin(), keys.end()));
}

TEST_P(SqliteStoreTest, ListsEachRecordOnceOverItsPages) {
  for (int i = 0; i < 25; ++i) {
    const Key key("", i % 2 == 0 ? "pay" : "refund", "k" + std::to_string(i));
    insert(*store_, key, claim_draft(seconds(i < 10 ? 1 : 60)));
  }
  std::multiset<std::string> seen;
  ListQuery query;
  query.limit = 5;
  int pages = 0;
  do {
    const auto page = store_->list(query);
    ASSERT_TRUE(page);
    for (const Listed& item : page->items) seen.insert(item.key.key);
    query.cursor = page->cursor;
    ++pages;
  } while (!query.cursor.empty());
  EXPECT_EQ(pages, 5);
  EXPECT_EQ(seen.size(), 25U);
  EXPECT_EQ(std::set<std::string>(seen.begin(), seen.end()).size(), 25U);

  clock_.advance(seconds(20));
  ListQuery lapsed;
  lapsed.limit = 3;
  lapsed.lapsed_for = seconds(20);
  lapsed.biz_type = "pay";
  seen.clear();
  do {
    const auto page = store_->list(lapsed);
    ASSERT_TRUE(page);
    for (const Listed& item : page->items) seen.insert(item.key.key);
    lapsed.cursor = page->cursor;
  } while (!lapsed.cursor.empty());
  EXPECT_EQ(seen, (std::multiset<std::string>{"k0", "k2", "k4", "k6", "k8"}));
  lapsed.lapsed_for = seconds(21);
  EXPECT_TRUE(store_->list(lapsed)->items.empty());
  lapsed.cursor = "nonsense";
  EXPECT_EQ(store_->list(lapsed).error().code, errc::invalid_argument);
}

TEST_P(SqliteStoreTest, StatsCountByStatusAndExpiry) {
  for (int i = 0; i < 3; ++i) insert(*store_, Key("p" + std::to_string(i)));
  Draft soon = claim_draft();
  soon.status = Status::success;
  soon.keep = seconds(1);
  insert(*store_, Key("s"), soon);
  clock_.advance(seconds(2));
  const auto stats = store_->stats();
  ASSERT_TRUE(stats);
  EXPECT_EQ(stats->processing, 3U);
  EXPECT_EQ(stats->success, 1U);
  EXPECT_EQ(stats->failed, 0U);
  EXPECT_EQ(stats->expired, 1U);
  EXPECT_GT(stats->bytes, 0U);
}

// H01 in small: of many racing inserts exactly one is written.
TEST_P(SqliteStoreTest, OfRacingInsertsExactlyOneIsWritten) {
  constexpr int kKeys = 100;
  std::vector<std::atomic<int>> wins(kKeys);
  std::atomic<int> failures{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < 8; ++t) {
    threads.emplace_back([&] {
      for (int i = 0; i < kKeys; ++i) {
        const Key key("k" + std::to_string(i));
        const Answer answer = insert(*store_, key);
        if (word(answer) == "written") ++wins[static_cast<std::size_t>(i)];
        if (answer.state == Answer::State::failed) ++failures;
        if (word(load(*store_, key)) != "stands") ++failures;  // acknowledged, so to be seen
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(failures, 0);
  for (const auto& won : wins) EXPECT_EQ(won, 1);
}

TEST_P(SqliteStoreTest, CapabilitiesSayWhatTheDatabaseReallyDoes) {
  const Capabilities& capabilities = store_->capabilities();
  EXPECT_EQ(capabilities.backend, "sqlite");
  const bool file = GetParam() == "file";
  EXPECT_EQ(capabilities.durability, file ? Durability::power : Durability::none);
  EXPECT_EQ(capabilities.multi_process, file);
  if (!file) return;
  SqliteOptions options;
  options.path = directory_.file();
  options.synchronous = SqliteOptions::Synchronous::normal;
  EXPECT_EQ((*open_sqlite(options))->capabilities().durability, Durability::process);
}

}  // namespace
}  // namespace idem
