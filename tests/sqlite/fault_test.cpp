// Disks and file systems that fail (H24, H25), and how many fsyncs a crowd of callers costs.
#include <gmock/gmock.h>

#include <thread>
#include <vector>

#include "faulty_vfs.hpp"
#include "helpers.hpp"

namespace idem {
namespace {

using testing::HasSubstr;

class SqliteFaults : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    static const bool kInstalled = (install_faulty_vfs(), true);
    ASSERT_TRUE(kInstalled);
  }
  ~SqliteFaults() override {
    faults.no_shared_memory = faults.locks_fail = faults.disk_full = false;
    faults.log_sync_fails = faults.log_write_fails = false;
    faults.log_sync_micros = 0;
  }

  Error open_error() {
    SqliteOptions options;
    options.path = directory_.file();
    auto store = open_sqlite(options);
    return store ? Error{} : store.error();
  }

  TempDir directory_;
};

TEST_F(SqliteFaults, AFileSystemWithoutWalIsRefused) {
  faults.no_shared_memory = true;
  const Error error = open_error();
  EXPECT_EQ(error.code, errc::cannot_open);
  EXPECT_THAT(error.message, HasSubstr("journal_mode stays \"delete\""));
  EXPECT_THAT(error.message, HasSubstr(directory_.file()));
  EXPECT_THAT(error.message, HasSubstr("network"));
}

TEST_F(SqliteFaults, LocksThatDoNotWorkAreRefused) {
  faults.locks_fail = true;
  const Error error = open_error();
  EXPECT_EQ(error.code, errc::cannot_open);
  EXPECT_THAT(error.message, HasSubstr("locking protocol"));
  EXPECT_THAT(error.message, HasSubstr("network"));
}

// Many callers, few fsyncs: while one is under way, the next batch gathers.
TEST_F(SqliteFaults, ConcurrentClaimsShareTheirFsyncs) {
  constexpr int kThreads = 8;
  constexpr int kClaims = 25;
  const StorePtr store = open_or_die(directory_.file());
  faults.log_sync_micros = 2'000;
  faults.log_syncs = 0;
  std::atomic<int> failures{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&, t] {
      for (int i = 0; i < kClaims; ++i) {
        const Key key(std::to_string(t) + "-" + std::to_string(i));
        if (word(insert(*store, key)) != "written") ++failures;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(failures, 0);
  EXPECT_EQ(store->stats()->processing, static_cast<std::uint64_t>(kThreads * kClaims));
  EXPECT_LT(faults.log_syncs, kThreads * kClaims / 2);
  EXPECT_GE(faults.log_syncs, kClaims) << "each thread waits for its own, one after the other";
}

// One batch is one transaction; an alone caller pays one fsync; a duplicate pays none.
TEST_F(SqliteFaults, ABatchCostsOneFsyncAndADuplicateNone) {
  const StorePtr store = open_or_die(directory_.file());
  std::vector<Key> keys;
  std::vector<Insert> ops;
  for (int i = 0; i < 100; ++i) keys.emplace_back("k" + std::to_string(i));
  for (const Key& key : keys) ops.push_back({key, claim_draft(), {}});
  faults.log_syncs = 0;
  store->insert(ops);
  EXPECT_EQ(faults.log_syncs, 1);
  store->insert(ops);
  EXPECT_EQ(word(ops[99].answer), "stands");
  EXPECT_EQ(word(replace(*store, Key("k0"), 1, claim_draft())), "stands");
  EXPECT_EQ(faults.log_syncs, 1);
}

// The record may be in the log or not: only "unknown" is true, and a repeat resolves it.
TEST_F(SqliteFaults, AnFsyncThatFailsAtCommitIsUnknown) {
  const StorePtr store = open_or_die(directory_.file());
  faults.log_sync_fails = true;
  const Key key("k");
  const Answer answer = insert(*store, key);
  EXPECT_EQ(word(answer), "unknown");
  EXPECT_THAT(answer.error.message, HasSubstr("disk I/O error"));
  EXPECT_THAT(answer.error.message, HasSubstr(directory_.file()));
  faults.log_sync_fails = false;
  const std::string repeated = word(insert(*store, key));
  EXPECT_TRUE(repeated == "written" || repeated == "stands") << repeated;
  EXPECT_EQ(word(load(*store, key)), "stands");
}

// H24: nothing was written, the text is SQLite's own, the file stays, and room makes it work again.
TEST_F(SqliteFaults, AFullDiskIsCapacityAndHarmsNothing) {
  const StorePtr store = open_or_die(directory_.file());
  const Key first("k1");
  const Answer claimed = insert(*store, first);
  faults.disk_full = true;
  const Answer full = replace(*store, first, claimed.held.version,
                              success_draft(claimed.held, std::string(200'000, 'r')));
  EXPECT_EQ(word(full), "capacity");
  EXPECT_THAT(full.error.message, HasSubstr("database or disk is full"));
  EXPECT_EQ(load(*store, first).held, claimed.held) << "still processing, with its token";
  EXPECT_EQ(word(insert(*store, Key("k2"))), "capacity");
  faults.disk_full = false;
  const std::string result(200'000, 'r');
  EXPECT_EQ(word(replace(*store, first, claimed.held.version, success_draft(claimed.held, result))),
            "written");
  EXPECT_EQ(word(load(*store, Key("k2"))), "absent");
  EXPECT_EQ(RawConnection(directory_.file()).text("PRAGMA integrity_check"), "ok");
}

// H24 with max_page_count: the item that does not fit fails, its neighbours in the batch do not.
TEST_F(SqliteFaults, TheItemThatDoesNotFitFailsAlone) {
  for (const char* path : {"", ":memory:"}) {
    SqliteOptions options;
    options.path = *path == '\0' ? directory_.file() : path;
    options.pages_max = 30;
    auto store = open_sqlite(options);
    ASSERT_TRUE(store) << store.error().message;
    const std::string large(200'000, 'r');
    Draft heavy = claim_draft();
    heavy.result = large;
    const std::vector<Key> keys = {"a", "b", "c"};
    std::vector<Insert> ops = {
        {keys[0], claim_draft(), {}}, {keys[1], heavy, {}}, {keys[2], claim_draft(), {}}};
    (*store)->insert(ops);
    EXPECT_EQ(word(ops[0].answer), "written");
    EXPECT_EQ(word(ops[1].answer), "capacity");
    EXPECT_THAT(ops[1].answer.error.message, HasSubstr("database or disk is full"));
    EXPECT_EQ(word(ops[2].answer), "written");
    for (const Key& key : keys)
      EXPECT_EQ(word(load(**store, key)), key.key == "b" ? "absent" : "stands");
  }
}

// A write that fails before COMMIT ends was not applied by this process, but the log may hold it.
TEST_F(SqliteFaults, AWriteThatFailsAtCommitIsNeverANo) {
  const StorePtr store = open_or_die(directory_.file());
  faults.log_write_fails = true;
  EXPECT_EQ(word(insert(*store, Key("k"))), "unknown");
  faults.log_write_fails = false;
  EXPECT_EQ(word(insert(*store, Key("k2"))), "written") << "the connection is good again";
}

}  // namespace
}  // namespace idem
