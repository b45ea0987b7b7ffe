// The store inside the caller's transaction: the record lasts if and only if the business does.
#include "idem/mysql_transaction.hpp"

#include <gmock/gmock.h>

#include <atomic>
#include <future>
#include <random>
#include <thread>
#include <vector>

#include "caller.hpp"
#include "idem/service.hpp"
#include "idem/testing/matchers.hpp"

namespace idem::mysql_test {
namespace {

using State = Answer::State;
using namespace idem::testing;  // NOLINT: matchers

constexpr std::string_view kLevels[] = {"READ COMMITTED", "REPEATABLE READ"};

// Each test once per layout; the business's table is there.
class MysqlTransaction : public EachLayout {
 protected:
  MysqlTransaction() : others_(open(options())), caller_(database()) {
    caller_.run("CREATE TABLE payment (name VARCHAR(64), note VARCHAR(64)) ENGINE=InnoDB");
  }

  [[nodiscard]] StorePtr joined(Caller& caller, MysqlTransactionOptions options = {}) {
    auto store = mysql_in_transaction(caller.connection(), options);
    if (!store) throw std::runtime_error(store.error().message);
    return *store;
  }
  [[nodiscard]] std::string payments() {
    return Raw(database().name()).cell("SELECT COUNT(*) FROM payment");
  }

  // Claims, pays and completes; everything but the COMMIT.
  void pay(Caller& caller, IdempotencyStore& store) {
    caller.run("BEGIN");
    const Answer claimed = insert(store, kKey, claim_of(Owner::random()));
    ASSERT_EQ(claimed.state, State::written) << claimed.error.message;
    caller.run("INSERT INTO payment VALUES ('k1', 'once')");
    const Answer done =
        replace(store, kKey, claimed.held.version, success_of(claimed.held, "paid"));
    ASSERT_EQ(done.state, State::written) << done.error.message;
    EXPECT_EQ(done.held.result, "paid");
    EXPECT_GT(done.held.version, claimed.held.version);
  }

  StorePtr others_;
  Caller caller_;
};
IDEM_EACH_LAYOUT(MysqlTransaction);

TEST_P(MysqlTransaction, CommitsTogether) {
  const StorePtr store = joined(caller_);
  pay(caller_, *store);
  EXPECT_EQ(load(*others_, kKey).state, State::absent) << "nothing is seen before the commit";
  EXPECT_EQ(load(*store, kKey).held.result, "paid");
  caller_.run("COMMIT");
  EXPECT_EQ(load(*others_, kKey).held.result, "paid");
  EXPECT_EQ(payments(), "1");
}

TEST_P(MysqlTransaction, RollsBackTogether) {
  const StorePtr store = joined(caller_);
  pay(caller_, *store);
  caller_.run("ROLLBACK");
  EXPECT_EQ(load(*others_, kKey).state, State::absent);
  EXPECT_EQ(payments(), "0");
  EXPECT_EQ(insert(*others_, kKey, claim_of(Owner::random())).state, State::written);
}

TEST_P(MysqlTransaction, ADuplicateWaitsForTheCommitAndThenReplays) {
  const StorePtr store = joined(caller_);
  pay(caller_, *store);
  std::promise<void> asked;
  auto duplicate = std::async(std::launch::async, [&] {
    Caller other(database());
    const StorePtr theirs = joined(other, {.row_wait = 20s});
    other.run("BEGIN");
    asked.set_value();
    const Answer answer = insert(*theirs, kKey, claim_of(Owner::random()));
    other.run("ROLLBACK");
    return answer;
  });
  asked.get_future().wait();
  caller_.run("COMMIT");
  const Answer answer = duplicate.get();
  EXPECT_EQ(answer.state, State::stands) << answer.error.message;
  EXPECT_EQ(answer.held.result, "paid");
}

// What the transaction had read before says "no such record", and would say so to its end.
TEST_P(MysqlTransaction, H29ADuplicateIsFoundInAnOldSnapshot) {
  caller_.run("SET SESSION TRANSACTION ISOLATION LEVEL REPEATABLE READ");
  IdempotencyService service(joined(caller_));
  caller_.run("BEGIN");
  EXPECT_EQ(caller_.cell("SELECT COUNT(*) FROM idempotent_record"), "0");
  IdempotencyService elsewhere(others_);
  auto claimed = elsewhere.claim(request("k"));
  ASSERT_THAT(claimed, IsClaimed());
  ASSERT_THAT(elsewhere.complete(std::get<Claimed>(*claimed).lease, "paid"), IsCompleted());
  EXPECT_THAT(service.claim(request("k")), ReplayOf("paid"));
  caller_.run("INSERT INTO payment VALUES ('k', 'still usable')");
  caller_.run("COMMIT");
  EXPECT_EQ(payments(), "1");
}

// Two units wait behind one that rolls back; the server ends one of them with a deadlock.
TEST_P(MysqlTransaction, H28OfTwoUnitsBehindARollbackOneRuns) {
  Raw root;
  for (const std::string_view level : kLevels) {
    for (int round = 0; round < 10; ++round) {
      const Request ours = request(std::string(level) + std::to_string(round));
      const StorePtr store = joined(caller_);
      caller_.run("BEGIN");
      ASSERT_EQ(insert(*store, ours.key, claim_of(Owner::random())).state, State::written);
      const auto unit = [&] { return pay_once(database(), ours, level); };
      auto b = std::async(std::launch::async, unit);
      auto c = std::async(std::launch::async, unit);
      EXPECT_TRUE(waiting_for_rows(root, 2));
      caller_.run("ROLLBACK");
      EXPECT_EQ(b.get() + c.get(), 1);
    }
  }
  EXPECT_EQ(payments(), "20");
}

// A wait over its limit undoes the unit; who overlooks it writes nothing.
TEST_P(MysqlTransaction, AWaitOverItsLimitRollsTheWholeBack) {
  const StorePtr store = joined(caller_);
  pay(caller_, *store);
  Caller other(database());
  const StorePtr theirs = joined(other);
  other.run("SET SESSION innodb_lock_wait_timeout = 17");
  other.run("BEGIN");
  other.run("INSERT INTO payment VALUES ('k1', 'twice')");
  const Answer answer = insert(*theirs, kKey, claim_of(Owner::random()));
  EXPECT_EQ(answer.error.code, errc::busy) << answer.error.message;
  EXPECT_EQ(other.try_run("INSERT INTO payment VALUES ('k1', 'twice')"), 1792);
  other.run("COMMIT");
  EXPECT_EQ(payments(), "0");
  EXPECT_EQ(other.cell("SELECT @@SESSION.innodb_lock_wait_timeout"), "17") << "as it was";
  caller_.run("COMMIT");
  other.run("BEGIN");
  EXPECT_EQ(insert(*theirs, kKey, claim_of(Owner::random())).held.result, "paid");
  other.run("ROLLBACK");
}

// A claim after a removal in another process, whose version is ahead of this clock.
TEST_P(MysqlTransaction, FencesGrowOverWhatOthersRemoved) {
  for (const std::string_view level : kLevels) {
    caller_.run("SET SESSION TRANSACTION ISOLATION LEVEL " + std::string(level));
    const StorePtr store = joined(caller_);
    Raw(database().name())
        .run(
            "UPDATE idempotent_record_meta SET version_floor = GREATEST(version_floor, "
            "4102444800000000) + 5");
    caller_.run("BEGIN");
    const Answer claimed = insert(*store, kKey, claim_of(Owner::random()));
    EXPECT_GT(claimed.held.fence, 4102444800000000U) << level;
    EXPECT_EQ(load(*store, kKey).held, claimed.held);
    caller_.run("ROLLBACK");
  }
}

// A record that was moved here brings its attempt's fence along; only its version is this store's.
TEST_P(MysqlTransaction, AFenceThatWasBroughtIsKept) {
  const std::uint64_t ahead = 4102444800000000;  // of every clock
  Raw meta(database().name());
  Draft moved = claim_of(Owner::random());
  for (const std::uint64_t fence : {std::uint64_t{1}, ahead + 10}) {
    moved.fence = fence;
    for (const std::uint64_t floor : {fence - 1, fence, fence + 7}) {
      meta.run("UPDATE idempotent_record_meta SET version_floor = " + std::to_string(floor));
      const StorePtr store = joined(caller_);
      caller_.run("BEGIN");
      const Answer inside = insert(*store, kKey, moved);
      EXPECT_EQ(load(*store, kKey).held, inside.held);
      caller_.run("ROLLBACK");
      const StorePtr fresh = open(options());  // knows no floor yet
      const Answer alone = insert(*fresh, kKey, moved);
      EXPECT_EQ(load(*fresh, kKey).held, alone.held);
      for (const Answer& answer : {inside, alone}) {
        ASSERT_EQ(answer.state, State::written) << answer.error.message;
        EXPECT_EQ(answer.held.fence, fence);
        EXPECT_GT(answer.held.version, floor);
        EXPECT_GE(answer.held.version, fence);
      }
      meta.run("DELETE FROM idempotent_record");
    }
  }
}

// A claim and a move in one batch: each gets the fence that is its own.
TEST_P(MysqlTransaction, AClaimBesideAMoveHasItsOwnFence) {
  Raw(database().name()).run("UPDATE idempotent_record_meta SET version_floor = 4102444800000000");
  const StorePtr fresh = open(options());
  std::vector<Insert> ops(9);
  const char* const keys[] = {"a", "b", "c", "d", "e", "f", "g", "h", "i"};
  for (std::size_t i = 0; i < ops.size(); ++i) {
    ops[i].key = {"", "", keys[i]};
    ops[i].draft = claim_of(Owner::random());
    ops[i].draft.fence = i % 3 == 0 ? 5 : 0;
  }
  fresh->insert(ops);
  for (const Insert& op : ops) {
    ASSERT_EQ(op.answer.state, State::written) << op.answer.error.message;
    EXPECT_EQ(op.answer.held.version, 4102444800000001U);
    EXPECT_EQ(op.answer.held.fence, op.draft.fence == 0 ? op.answer.held.version : 5U);
  }
}

// A long business transaction must not hold up everybody's removals and sweeps.
TEST_P(MysqlTransaction, HoldsNoRowButItsOwn) {
  for (const std::string_view level : kLevels) {
    caller_.run("SET SESSION TRANSACTION ISOLATION LEVEL " + std::string(level));
    const StorePtr store = joined(caller_);
    pay(caller_, *store);
    const KeyRef other{"", "pay", "other"};
    const Answer claimed = insert(*others_, other, claim_of(Owner::random()));
    EXPECT_EQ(claimed.state, State::written) << claimed.error.message;
    EXPECT_EQ(remove(*others_, other, claimed.held.version).state, State::written) << level;
    caller_.run("ROLLBACK");
  }
}

TEST_P(MysqlTransaction, RefusesWhatItCannotKeep) {
  const StorePtr store = joined(caller_);
  const Answer outside = insert(*store, kKey, claim_of(Owner::random()));
  EXPECT_EQ(outside.error.code, errc::invalid_argument) << outside.error.message;
  EXPECT_EQ(load(*others_, kKey).state, State::absent);
  caller_.run("BEGIN");
  const Answer claimed = insert(*store, kKey, claim_of(Owner::random()));
  EXPECT_EQ(remove(*store, kKey, claimed.held.version).error.code, errc::unsupported);
  EXPECT_EQ(store->sweep(1).error().code, errc::unsupported);
  caller_.run("ROLLBACK");
  const auto code_of = [&](const MysqlTransactionOptions& options) {
    const auto refused = mysql_in_transaction(caller_.connection(), options);
    return refused ? errc{} : refused.error().code;
  };
  EXPECT_EQ(code_of({.table = "no_such_table"}), errc::cannot_open);
  EXPECT_EQ(code_of({.table = "x; DROP TABLE payment"}), errc::invalid_argument);
  EXPECT_EQ(code_of({.row_wait = 500ms}), errc::invalid_argument);
  for (const char* const setting :
       {"TRANSACTION ISOLATION LEVEL SERIALIZABLE", "TRANSACTION ISOLATION LEVEL READ UNCOMMITTED",
        "sql_mode = ''"}) {
    Caller odd(database());
    odd.run("SET SESSION " + std::string(setting));
    EXPECT_EQ(mysql_in_transaction(odd.connection()).error().code, errc::invalid_argument)
        << setting;
  }
}

// A unit's own error or exception ends it at once; what it did is undone.
TEST_P(MysqlTransaction, AUnitThatFailsLeavesNothing) {
  IdempotencyService service(joined(caller_));
  int runs = 0;
  const auto unit = [&](auto end) {
    return mysql_transact(caller_.connection(), [&]() -> result<bool> {
      ++runs;
      auto claimed = service.claim(request("k"));
      EXPECT_THAT(claimed, IsClaimed());
      caller_.run("INSERT INTO payment VALUES ('k', 'undone')");
      return end();
    });
  };
  const auto failed = unit([]() -> result<bool> { return fail(errc::capacity, "no money"); });
  EXPECT_EQ(failed.error().code, errc::capacity);
  EXPECT_THROW((void)unit([]() -> result<bool> { throw std::runtime_error("no"); }),
               std::runtime_error);
  EXPECT_FALSE(*unit([]() -> result<bool> { return false; }));
  EXPECT_EQ(runs, 3);
  const auto busy = unit([]() -> result<bool> { return fail(errc::busy, "always"); });
  EXPECT_EQ(busy.error().code, errc::busy);
  EXPECT_EQ(runs, 3 + kMysqlUnitRuns);
  EXPECT_EQ(payments(), "0");
  EXPECT_TRUE(*unit([]() -> result<bool> { return true; }));
  EXPECT_EQ(payments(), "1");
}

// A unit that overlooks a deadlock would commit its second half alone.
TEST_P(MysqlTransaction, AUnitWhoseTransactionEndedIsNotToldItCommitted) {
  int runs = 0;
  const auto done = mysql_transact(caller_.connection(), [&]() -> result<bool> {
    if (++runs == 1) caller_.run("ROLLBACK");
    caller_.run("INSERT INTO payment VALUES ('k', 'x')");
    return true;
  });
  EXPECT_TRUE(*done);
  EXPECT_EQ(runs, 2);
}

// Waits and deadlocks at random, with business rows in opposite orders: the books balance.
TEST_P(MysqlTransaction, H35NothingHalfDoneIsCommitted) {
  constexpr int kThreads = 8;
  const int units = nightly() ? 1000 : 200;
  Raw(database().name()).run("CREATE TABLE account (id INT PRIMARY KEY, sum INT) ENGINE=InnoDB");
  Raw(database().name()).run("INSERT INTO account VALUES (0,0),(1,0),(2,0),(3,0)");
  std::atomic<int> reported{0};
  std::atomic<int> gave_up{0};
  std::atomic<int> next{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&, t] {
      Caller caller(database());
      caller.run("SET SESSION TRANSACTION ISOLATION LEVEL " + std::string(kLevels[t % 2]));
      caller.run("SET SESSION innodb_lock_wait_timeout = 1");
      IdempotencyService service(joined(caller));
      std::minstd_rand random(static_cast<unsigned>(t));
      for (int i = 0; (i = next++) < units;) {
        const auto done = mysql_transact(caller.connection(), [&]() -> result<bool> {
          // Every key is paid for by two threads.
          auto claimed = service.claim(request("unit" + std::to_string(i / 2)));
          if (!claimed) return claimed.error();
          auto* mine = std::get_if<Claimed>(&*claimed);
          if (mine == nullptr) return false;
          const auto first = random() % 4;
          for (const auto id : {first, (first + 1 + random() % 3) % 4})
            caller.execute("UPDATE account SET sum = sum + 1 WHERE id = " + std::to_string(id));
          caller.execute("INSERT INTO payment VALUES ('" + mine->lease.request().key.key +
                         "', '')");
          auto completed = service.complete(mine->lease, "paid");
          if (!completed) return completed.error();
          return true;
        });
        if (done && *done) ++reported;
        if (!done) ++gave_up;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  Raw raw(database().name());
  const std::string count = std::to_string(reported);
  EXPECT_EQ(payments(), count);
  EXPECT_EQ(raw.cell("SELECT COUNT(DISTINCT name) FROM payment"), count);
  EXPECT_EQ(raw.cell("SELECT CAST(SUM(sum) AS CHAR) FROM account"), std::to_string(2 * reported));
  EXPECT_EQ(raw.cell("SELECT COUNT(*) FROM idempotent_record WHERE status = 1"), count);
  EXPECT_EQ(raw.cell("SELECT COUNT(*) FROM idempotent_record"), count) << "nothing half-done";
  EXPECT_EQ(reported, units / 2) << gave_up << " gave up";
  std::printf("units: %d, committed: %d, gave up: %d, deadlocks: %s\n", units, reported.load(),
              gave_up.load(),
              raw.cell("SELECT variable_value FROM information_schema.global_status WHERE "
                       "variable_name = 'INNODB_DEADLOCKS'")
                  .c_str());
}

}  // namespace
}  // namespace idem::mysql_test
