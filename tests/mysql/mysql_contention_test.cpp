// Transactions of others in the way: waits, deadlocks, snapshots, gaps.
#include <gmock/gmock.h>

#include <future>
#include <random>
#include <thread>
#include <vector>

#include "idem/service.hpp"
#include "idem/testing/matchers.hpp"
#include "support.hpp"

namespace idem::mysql_test {
namespace {

using State = Answer::State;
using namespace idem::testing;  // NOLINT: matchers

class MysqlContention : public EachLayout {};
IDEM_EACH_LAYOUT(MysqlContention);

// A row as an application's own transaction would claim it.
std::string claim_sql(std::string_view key) {
  return "INSERT INTO idempotent_record (tenant, biz_type, idem_key, request_hash, owner, version, "
         "fence, attempt, status, fail_kind, flags, lease_until, retry_at, create_time, "
         "update_time, expires_at, result_digest, result_json) VALUES ('', 'pay', '" +
         std::string(key) +
         "', REPEAT('a', 64), REPEAT('b', 16), 5, 5, 1, 0, 0, 0, 4102444800000000, 0, 1, 1, "
         "4102444800000000, '', '')";
}

// Two claims wait behind one that rolls back: the server kills one of them with a deadlock, always.
TEST_P(MysqlContention, H28OfTwoClaimsBehindARollbackOneWins) {
  const StorePtr b = open(options());
  const StorePtr c = open(options());
  Raw root;
  for (const std::string_view level : {"REPEATABLE READ", "READ COMMITTED"}) {
    for (int round = 0; round < 100; ++round) {
      Raw a(database().name());
      a.run("SET SESSION TRANSACTION ISOLATION LEVEL " + std::string(level));
      const std::string key = std::string(level) + std::to_string(round);
      a.run("BEGIN");
      a.run(claim_sql(key));
      const KeyRef ref{"", "pay", key};
      auto of_b = std::async(std::launch::async,
                             [&] { return insert(*b, ref, claim_of(Owner::random())); });
      auto of_c = std::async(std::launch::async,
                             [&] { return insert(*c, ref, claim_of(Owner::random())); });
      EXPECT_TRUE(waiting_for_rows(root, 2));
      a.run("ROLLBACK");
      const Answer one = of_b.get();
      const Answer two = of_c.get();
      EXPECT_EQ((one.state == State::written) + (two.state == State::written), 1)
          << one.error.message << two.error.message;
      EXPECT_EQ((one.state == State::stands) + (two.state == State::stands), 1);
    }
  }
}

TEST_P(MysqlContention, H28OfTwoClaimsBehindACommitNoneWins) {
  const StorePtr b = open(options());
  const StorePtr c = open(options());
  Raw root;
  for (int round = 0; round < 200; ++round) {
    Raw a(database().name());
    const std::string key = "k" + std::to_string(round);
    a.run(std::string("SET SESSION TRANSACTION ISOLATION LEVEL ") +
          (round % 2 == 0 ? "REPEATABLE READ" : "READ COMMITTED"));
    a.run("BEGIN");
    a.run(claim_sql(key));
    const KeyRef ref{"", "pay", key};
    auto of_b =
        std::async(std::launch::async, [&] { return insert(*b, ref, claim_of(Owner::random())); });
    auto of_c =
        std::async(std::launch::async, [&] { return insert(*c, ref, claim_of(Owner::random())); });
    EXPECT_TRUE(waiting_for_rows(root, 2));
    a.run("COMMIT");
    EXPECT_EQ(of_b.get().state, State::stands);
    EXPECT_EQ(of_c.get().state, State::stands);
  }
}

// A snapshot older than the row that refused us would say "no such record".
TEST_P(MysqlContention, H29ADuplicateIsFoundWhateverTheServersIsolationIs) {
  Raw root;
  root.run("SET GLOBAL TRANSACTION ISOLATION LEVEL REPEATABLE READ");
  root.run("SET GLOBAL autocommit = 0");
  const StorePtr store = open(options());
  const StorePtr other = open(options());
  // Every connection of `store` has read the table before the record is there.
  for (int i = 0; i < 8; ++i) EXPECT_EQ(load(*store, kKey).state, State::absent);
  const Answer claimed = insert(*other, kKey, claim_of(Owner::random()));
  ASSERT_EQ(replace(*other, kKey, claimed.held.version, success_of(claimed.held, "paid")).state,
            State::written);
  const Answer answer = insert(*store, kKey, claim_of(Owner::random()));
  EXPECT_EQ(answer.state, State::stands);
  EXPECT_EQ(answer.held.result, "paid");
  root.run("SET GLOBAL autocommit = 1");
}

// A claim inside a long business transaction holds its row: not "no", not for ever, and others go
// on.
TEST_P(MysqlContention, ARowHeldTooLongIsBusyAndItsNeighboursAreWritten) {
  const StorePtr store = open(options());
  Raw a(database().name());
  a.run("BEGIN");
  a.run(claim_sql("held"));
  std::vector<Insert> batch;
  for (const std::string_view key : {"a", "held", "z"})
    batch.push_back({{"", "pay", key}, claim_of(Owner::random()), {}});
  store->insert(batch);
  EXPECT_EQ(batch[0].answer.state, State::written) << batch[0].answer.error.message;
  EXPECT_EQ(batch[1].answer.error.code, errc::busy);
  EXPECT_EQ(batch[2].answer.state, State::written) << batch[2].answer.error.message;
  a.run("ROLLBACK");
  EXPECT_EQ(insert(*store, {"", "pay", "held"}, claim_of(Owner::random())).state, State::written);
}

// A loser that stayed in its transaction after error 1062 would hold the owner's row.
TEST_P(MysqlContention, ALoserHoldsNoRow) {
  const StorePtr store = open(options());
  ASSERT_EQ(insert(*store, kKey, claim_of(Owner::random())).state, State::written);
  ASSERT_EQ(insert(*store, kKey, claim_of(Owner::random())).state, State::stands);
  std::vector<Insert> batch;
  for (const std::string_view key : {"a", "k1", "z"})
    batch.push_back({{"", "pay", key}, claim_of(Owner::random()), {}});
  store->insert(batch);
  Raw owner(database().name());
  owner.run("SET SESSION innodb_lock_wait_timeout = 1");
  EXPECT_EQ(owner.try_run("UPDATE idempotent_record SET attempt = 7 WHERE idem_key = 'k1'"), 0);
}

// Probing for absence, or sweeping, must not lock the gaps where new keys go.
TEST_P(MysqlContention, ReadersAndTheSweepLockNoGap) {
  const StorePtr store = open(options());
  Draft brief = claim_of(Owner::random());
  brief.keep = 1us;
  ASSERT_EQ(insert(*store, {"", "pay", "m"}, brief).state, State::written);
  EXPECT_EQ(load(*store, {"", "pay", "n"}).state, State::absent);
  ASSERT_EQ(store->sweep(10).value(), 1U);
  Raw other(database().name());
  other.run("SET SESSION innodb_lock_wait_timeout = 1");
  EXPECT_EQ(other.try_run(claim_sql("m")), 0);
  EXPECT_EQ(other.try_run(claim_sql("n")), 0);
  EXPECT_EQ(Raw("").cell("SELECT COUNT(*) FROM information_schema.innodb_trx"), "0");
}

// Stops the store's insert of kKey between its row and its answer, by a lock on the table of the
// floor, which the answer needs; runs `meanwhile` there.
Answer insert_held_up(const StorePtr& store, const Database& database, const Draft& draft,
                      const std::function<void()>& meanwhile) {
  (void)insert(*store, {"", "pay", "prepares the statements"}, claim_of(Owner::random()));
  Raw root;
  Raw blocker(database.name());
  blocker.run("LOCK TABLES idempotent_record_meta WRITE");
  auto answer = std::async(std::launch::async, [&] { return insert(*store, kKey, draft); });
  EXPECT_TRUE(comes_true([&] {
    return root.cell("SELECT COUNT(*) FROM information_schema.processlist WHERE db = '" +
                     database.name() + "' AND state LIKE 'Waiting for table%'") == "1";
  }));
  meanwhile();
  blocker.run("UNLOCK TABLES");
  return answer.get();
}

// A writer that is told "another one stands there" of its own record has run, and does not know it.
TEST_P(MysqlContention, WhoWroteTheRecordIsToldSoHoweverSoonItIsTakenOver) {
  MysqlOptions patient = options();
  patient.connections = 1;
  patient.timeout = 60s;
  const StorePtr store = open(patient);
  const Draft draft = claim_of(Owner::random());
  const Answer answer = insert_held_up(store, database(), draft, [&] {
    Raw other(database().name());
    other.run("SET SESSION innodb_lock_wait_timeout = 1");
    (void)other.try_run(
        "UPDATE idempotent_record SET owner = REPEAT('b', 16), attempt = 2, version = version + 1 "
        "WHERE idem_key = 'k1'");
  });
  EXPECT_EQ(answer.state, State::written);
  EXPECT_EQ(answer.held.owner, draft.owner);
  EXPECT_EQ(answer.held.attempt, 1U);
}

// Between its insert and its final fence a record could be taken over with a fence that was there
// before.
TEST_P(MysqlContention, NobodySeesARecordWithAFenceThatMayRepeat) {
  MysqlOptions patient = options();
  patient.connections = 1;
  patient.timeout = 60s;
  const StorePtr store = open(patient);
  const std::string ahead = "4102444800000000";  // of every clock
  Raw other(database().name());
  const Answer answer = insert_held_up(store, database(), claim_of(Owner::random()), [&] {
    EXPECT_EQ(other.cell("SELECT COUNT(*) FROM idempotent_record WHERE idem_key = 'k1'"), "0");
  });
  EXPECT_EQ(answer.state, State::written);
  // Another process removes a record whose version is ahead of the clock.
  other.run("UPDATE idempotent_record_meta SET version_floor = " + ahead);
  const Answer after = insert(*store, {"", "pay", "k2"}, claim_of(Owner::random()));
  EXPECT_EQ(after.state, State::written);
  EXPECT_GT(after.held.fence, std::stoull(ahead));
  EXPECT_EQ(after.held.fence, after.held.version);
  EXPECT_EQ(load(*store, {"", "pay", "k2"}).held, after.held);
  // But a record that was there before keeps its fence, even if it is the same owner's.
  other.run("UPDATE idempotent_record_meta SET version_floor = version_floor + 10");
  const Answer again = insert(*store, {"", "pay", "k2"}, claim_of(after.held.owner));
  EXPECT_EQ(again.state, State::stands);
  EXPECT_EQ(again.held, after.held);
}

// Removals hold the floor until they are durable: claims of other keys must not wait for them.
TEST_P(MysqlContention, AnInsertDoesNotWaitForARemoval) {
  const StorePtr store = open(options());
  Raw remover(database().name());
  remover.run("BEGIN");
  remover.run("UPDATE idempotent_record_meta SET version_floor = version_floor + 1");
  EXPECT_EQ(insert(*store, kKey, claim_of(Owner::random())).state, State::written);
  remover.run("ROLLBACK");
}

// Batches over the same keys in any order, beside transactions that take them in the worst order:
// nothing half-done is kept, nothing is told twice, and no deadlock reaches a caller.
TEST_P(MysqlContention, H35NothingHalfDoneIsKeptAfterADeadlock) {
  constexpr int kKeys = 12;
  constexpr int kRounds = 25;
  const StorePtr store = open(options());
  std::vector<std::string> keys;
  for (int k = 0; k < kKeys; ++k) keys.push_back("key" + std::to_string(10 + k));
  std::vector<Record> before;
  for (const std::string& key : keys)
    before.push_back(insert(*store, {"", "pay", key}, claim_of(Owner::random())).held);

  std::atomic<bool> stop{false};
  std::thread saboteur([&] {
    Raw raw(database().name());
    std::minstd_rand random(7);
    while (!stop) {  // holds high keys, then wants low ones: a batch goes upwards
      raw.run("BEGIN");
      for (const int k :
           {kKeys - 1 - static_cast<int>(random() % 4), static_cast<int>(random() % 4)})
        (void)raw.try_run(
            "UPDATE idempotent_record SET attempt = attempt + 0 WHERE tenant = '' AND "
            "biz_type = 'pay' AND idem_key = '" +
            keys[static_cast<std::size_t>(k)] + "'");
      raw.run("ROLLBACK");
    }
  });
  int wrong = 0;
  int failed = 0;
  for (int round = 0; round < kRounds; ++round) {
    std::vector<Replace> batch;
    for (int k = kKeys; k-- > 0;) {
      const auto i = static_cast<std::size_t>(k);
      Draft draft = claim_of(before[i].owner);
      draft.fresh = false;
      draft.fence = before[i].fence;
      draft.attempt = before[i].attempt + 1;
      batch.push_back({{"", "pay", keys[i]}, before[i].version, draft, {}});
    }
    store->replace(batch);
    for (const Replace& op : batch) {
      const auto i =
          static_cast<std::size_t>(std::find(keys.begin(), keys.end(), op.key.key) - keys.begin());
      const Record now = load(*store, op.key).held;
      const bool written = op.answer.state == State::written;
      if (op.answer.state == State::failed) ++failed;
      if (written != (now.attempt == before[i].attempt + 1)) ++wrong;
      if (written && now != op.answer.held) ++wrong;
      before[i] = now;
    }
  }
  stop = true;
  saboteur.join();
  EXPECT_NE(Raw().cell("SELECT variable_value FROM information_schema.global_status WHERE "
                       "variable_name = 'INNODB_DEADLOCKS'"),
            "0");
  EXPECT_EQ(wrong, 0);
  EXPECT_EQ(failed, 0);
}

// The order of a batch is the caller's business; the order in which rows are taken is ours.
TEST_P(MysqlContention, BatchesOfTheSameKeysInAnyOrderDoNotDeadlock) {
  const StorePtr store = open(options());
  std::atomic<int> written{0};
  std::atomic<int> failed{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < 8; ++t) {
    threads.emplace_back([&, t] {
      std::minstd_rand random(static_cast<unsigned>(t));
      for (int round = 0; round < 12; ++round) {
        std::vector<std::string> keys;
        for (int k = 0; k < 20; ++k) keys.push_back(std::to_string(round * 20 + k));
        std::shuffle(keys.begin(), keys.end(), random);
        std::vector<Insert> batch;
        for (const std::string& key : keys)
          batch.push_back({{"", "pay", key}, claim_of(Owner::random()), {}});
        store->insert(batch);
        for (const Insert& op : batch) {
          if (op.answer.state == State::written) ++written;
          if (op.answer.state == State::failed) ++failed;
        }
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(written, 240);
  EXPECT_EQ(failed, 0);
}

}  // namespace
}  // namespace idem::mysql_test
