// The store inside the caller's transaction: the record lasts if and only if the business does.
#include <gmock/gmock.h>

#include <thread>

#include "helpers.hpp"

namespace idem {
namespace {

using testing::HasSubstr;

class SqliteTransaction : public testing::Test {
 protected:
  SqliteTransaction() {
    raw_.run("CREATE TABLE payment (id INTEGER PRIMARY KEY, note TEXT)");
    raw_.run("PRAGMA journal_mode=WAL");
    auto joined = sqlite_in_transaction(raw_.handle());
    EXPECT_TRUE(joined) << joined.error().message;
    joined_ = *joined;
  }

  // Claims, pays and completes; everything but the COMMIT.
  void pay(const Key& key) {
    ASSERT_EQ(raw_.run("BEGIN IMMEDIATE"), SQLITE_OK);
    const Answer claimed = insert(*joined_, key);
    ASSERT_EQ(word(claimed), "written");
    ASSERT_EQ(raw_.run("INSERT INTO payment VALUES (1, 'once')"), SQLITE_OK);
    ASSERT_EQ(
        word(replace(*joined_, key, claimed.held.version, success_draft(claimed.held, "paid"))),
        "written");
  }

  TempDir directory_;
  StorePtr others_ = open_or_die(directory_.file());
  RawConnection raw_{directory_.file()};
  StorePtr joined_;
};

TEST_F(SqliteTransaction, CommitsTogether) {
  const Key key("k");
  pay(key);
  EXPECT_EQ(word(load(*others_, key)), "absent") << "nothing is seen before the commit";
  EXPECT_EQ(load(*joined_, key).held.result, "paid");
  ASSERT_EQ(raw_.run("COMMIT"), SQLITE_OK);
  EXPECT_EQ(load(*others_, key).held.result, "paid");
  EXPECT_EQ(raw_.text("SELECT count(*) FROM payment"), "1");
}

TEST_F(SqliteTransaction, RollsBackTogether) {
  const Key key("k");
  pay(key);
  ASSERT_EQ(raw_.run("ROLLBACK"), SQLITE_OK);
  EXPECT_EQ(word(load(*others_, key)), "absent");
  EXPECT_EQ(raw_.text("SELECT count(*) FROM payment"), "0");
  EXPECT_EQ(word(insert(*others_, key)), "written");
}

TEST_F(SqliteTransaction, ADuplicateWaitsForTheCommitAndThenReplays) {
  const Key key("k");
  pay(key);
  std::thread duplicate([&] {
    const Answer answer = insert(*others_, key);
    EXPECT_EQ(word(answer), "stands");
    EXPECT_EQ(answer.held.result, "paid");
  });
  ASSERT_EQ(raw_.run("COMMIT"), SQLITE_OK);
  duplicate.join();
}

// H24, second part: the limit is hit at complete; neither the payment nor the record remains.
TEST_F(SqliteTransaction, AFullDiskUndoesBusinessAndRecord) {
  const Key key("k");
  raw_.run("PRAGMA max_page_count=20");
  ASSERT_EQ(raw_.run("BEGIN IMMEDIATE"), SQLITE_OK);
  const Answer claimed = insert(*joined_, key);
  ASSERT_EQ(raw_.run("INSERT INTO payment VALUES (1, 'once')"), SQLITE_OK);
  const std::string large(200'000, 'r');
  const Answer full =
      replace(*joined_, key, claimed.held.version, success_draft(claimed.held, large));
  EXPECT_EQ(word(full), "capacity");
  EXPECT_THAT(full.error.message, HasSubstr("database or disk is full"));
  EXPECT_NE(raw_.run("COMMIT"), SQLITE_OK) << "a caller who overlooks the error commits nothing";
  EXPECT_EQ(raw_.text("SELECT count(*) FROM payment"), "0");
  EXPECT_EQ(word(load(*others_, key)), "absent");
  EXPECT_EQ(raw_.text("PRAGMA integrity_check"), "ok");
}

TEST_F(SqliteTransaction, WithoutAWriteTransactionNothingIsWritten) {
  const Key key("k");
  EXPECT_EQ(word(insert(*joined_, key)), "invalid_argument");
  ASSERT_EQ(raw_.run("BEGIN"), SQLITE_OK);
  const Answer answer = insert(*joined_, key);
  EXPECT_EQ(word(answer), "invalid_argument");
  EXPECT_THAT(answer.error.message, HasSubstr("BEGIN IMMEDIATE"));
  EXPECT_EQ(joined_->sweep(1).error().code, errc::invalid_argument);
  raw_.run("ROLLBACK");
  EXPECT_EQ(word(load(*others_, key)), "absent");
}

TEST_F(SqliteTransaction, TheTablesMustBeThere) {
  RawConnection empty(directory_.file("empty.db"));
  const auto joined = sqlite_in_transaction(empty.handle());
  ASSERT_FALSE(joined);
  EXPECT_EQ(joined.error().code, errc::cannot_open);
  EXPECT_EQ(empty.text("SELECT count(*) FROM sqlite_master"), "0");
}

}  // namespace
}  // namespace idem
