// Tables that are not as they must be: each is named, with the statement that mends it.
#include <gmock/gmock.h>

#include <future>

#include "support.hpp"

namespace idem::mysql_test {
namespace {

using ::testing::HasSubstr;

class MysqlSchema : public EachLayout {
 protected:
  // Makes the table, spoils it, and tells what opening says.
  Error after(std::string_view spoiling) {
    (void)open(options());
    Raw raw(database().name());
    raw.run(spoiling);
    MysqlOptions any = options();
    any.layout.reset();
    const auto opened = open_mysql(any);
    if (opened) {
      ADD_FAILURE() << "opened after " << spoiling;
      return {};
    }
    return opened.error();
  }
};
IDEM_EACH_LAYOUT(MysqlSchema);

struct Spoiled {
  std::string_view sql;
  std::string_view remedy;
};

TEST_P(MysqlSchema, EveryFlawIsNamedWithItsRemedy) {
  for (const Spoiled& flaw : {
           Spoiled{"MODIFY idem_key VARCHAR(128) CHARACTER SET utf8mb4 COLLATE utf8mb4_general_ci "
                   "NOT NULL",
                   "MODIFY idem_key VARBINARY(128) NOT NULL"},
           Spoiled{"MODIFY idem_key VARCHAR(128) CHARACTER SET ascii COLLATE ascii_bin NOT NULL",
                   "MODIFY idem_key VARBINARY(128) NOT NULL"},
           Spoiled{"MODIFY idem_key VARBINARY(64) NOT NULL", "MODIFY idem_key VARBINARY(128)"},
           Spoiled{"MODIFY tenant VARBINARY(32) NOT NULL", "MODIFY tenant VARBINARY(64)"},
           Spoiled{"MODIFY result_json TEXT NOT NULL", "MODIFY result_json MEDIUMBLOB NOT NULL"},
           Spoiled{"MODIFY result_json BLOB NOT NULL", "MODIFY result_json MEDIUMBLOB NOT NULL"},
           Spoiled{"MODIFY result_json MEDIUMBLOB NULL", "MODIFY result_json MEDIUMBLOB NOT NULL"},
           Spoiled{"MODIFY expires_at TIMESTAMP(6) NOT NULL", "MODIFY expires_at BIGINT NOT NULL"},
           Spoiled{"MODIFY version BIGINT NOT NULL", "MODIFY version BIGINT UNSIGNED NOT NULL"},
           Spoiled{"DROP COLUMN owner", "ADD owner BINARY(16) NOT NULL"},
           Spoiled{"ADD amount INT NOT NULL", "ALTER amount SET DEFAULT"},
           Spoiled{"ENGINE=MyISAM", "ENGINE=InnoDB"},
       }) {
    const Error error = after("ALTER TABLE idempotent_record " + std::string(flaw.sql));
    EXPECT_EQ(error.code, errc::cannot_open) << flaw.sql;
    EXPECT_THAT(error.message, HasSubstr(std::string(flaw.remedy)));
    Raw(database().name()).run("DROP TABLE idempotent_record");
  }
}

TEST_P(MysqlSchema, WithoutItsUniqueKeyATableIsRefused) {
  const std::string drop =
      GetParam() == MysqlOptions::Layout::clustered
          ? "DROP PRIMARY KEY"
          : "DROP KEY uk_idem_key, ADD KEY uk_idem_key (tenant, biz_type, idem_key)";
  const Error error = after("ALTER TABLE idempotent_record " + drop);
  EXPECT_EQ(error.code, errc::cannot_open);
  EXPECT_THAT(error.message, HasSubstr("ADD UNIQUE KEY uk_idem_key (tenant, biz_type, idem_key)"));
}

TEST(MysqlUniqueKey, AKeyOverPartOfAColumnIsRefused) {
  const Database database;
  const auto options = database.options(MysqlOptions::Layout::articles);
  (void)open(options);
  Raw(database.name())
      .run(
          "ALTER TABLE idempotent_record DROP KEY uk_idem_key, ADD UNIQUE KEY uk_idem_key "
          "(tenant, biz_type, idem_key(20))");
  EXPECT_EQ(open_mysql(options).error().code, errc::cannot_open);
}

// The application's own columns and indexes may stand beside ours.
TEST_P(MysqlSchema, AColumnOfTheApplicationWithADefaultIsNoFlaw) {
  (void)open(options());
  Raw(database().name()).run("ALTER TABLE idempotent_record ADD note VARCHAR(9) DEFAULT 'x' FIRST");
  const StorePtr store = open(options());
  EXPECT_EQ(insert(*store, kKey, claim_of(Owner::random())).state, Answer::State::written);
}

TEST_P(MysqlSchema, TheLayoutOfATableIsFoundAndAnotherOneRefused) {
  (void)open(options());
  MysqlOptions any = options();
  any.layout.reset();
  EXPECT_TRUE(open_mysql(any));
  any.layout = GetParam() == MysqlOptions::Layout::clustered ? MysqlOptions::Layout::articles
                                                             : MysqlOptions::Layout::clustered;
  EXPECT_EQ(open_mysql(any).error().code, errc::cannot_open);
}

TEST_P(MysqlSchema, ANewerSchemaIsNotTouched) {
  const Error error = after("UPDATE idempotent_record_meta SET schema_version = 2");
  EXPECT_EQ(error.code, errc::cannot_open);
  EXPECT_THAT(error.message, HasSubstr("schema version 2"));
}

TEST_P(MysqlSchema, ThePrintedSchemaIsTheOneThatIsMade) {
  Raw raw(database().name());
  const std::string sql = mysql_schema(GetParam(), "by_hand");
  for (std::size_t at = 0; at < sql.size();) {
    const std::size_t end = sql.find(";\n", at);
    raw.run(sql.substr(at, end - at));
    at = end + 2;
  }
  MysqlOptions by_hand = options();
  by_hand.table = "by_hand";
  EXPECT_TRUE(open_mysql(by_hand));
}

// A user that may not make tables is told what to have made; then it needs no such right.
TEST_P(MysqlSchema, WithoutTheRightToMakeTablesTheStatementIsTold) {
  Raw root;
  const std::string user = "u" + Owner::random().hex().substr(0, 8);
  root.run("CREATE USER " + user + "@localhost");
  root.run("GRANT SELECT, INSERT, UPDATE, DELETE ON " + database().name() + ".* TO " + user +
           "@localhost");
  MysqlOptions limited = options();
  limited.user = user;
  const auto refused = open_mysql(limited);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, errc::denied);
  EXPECT_THAT(refused.error().message, HasSubstr("CREATE TABLE"));
  (void)open(options());
  const StorePtr store = open(limited);
  const Answer claimed = insert(*store, kKey, claim_of(Owner::random()));
  EXPECT_EQ(claimed.state, Answer::State::written);
  EXPECT_EQ(remove(*store, kKey, claimed.held.version).state, Answer::State::written);
  root.run("DROP USER " + user + "@localhost");
}

TEST_P(MysqlSchema, SeveralProcessesMayOpenAnEmptyDatabaseAtOnce) {
  std::vector<std::future<bool>> opened;
  for (int i = 0; i < 6; ++i)
    opened.push_back(std::async(std::launch::async, [&] {
      const auto store = open_mysql(options());
      if (!store) ADD_FAILURE() << store.error().message;
      return store.has_value();
    }));
  for (auto& one : opened) EXPECT_TRUE(one.get());
  EXPECT_EQ(Raw(database().name()).cell("SELECT COUNT(*) FROM idempotent_record_meta"), "1");
}

}  // namespace
}  // namespace idem::mysql_test
