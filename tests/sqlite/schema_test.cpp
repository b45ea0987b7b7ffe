// The tables are made once and verified ever after; what is not ours is named and left alone.
#include <gmock/gmock.h>

#include "helpers.hpp"

namespace idem {
namespace {

using testing::HasSubstr;

Error error_of(const std::string& path) {
  SqliteOptions options;
  options.path = path;
  auto store = open_sqlite(options);
  return store ? Error{} : store.error();
}

std::string schema_of(const std::string& path) {
  return RawConnection(path).text(
      "SELECT group_concat(coalesce(sql, name), '; ') FROM sqlite_master");
}

// Replaces `from` by `to` in our own schema, makes that, and opens it.
Error error_after(const std::string& from, const std::string& to) {
  TempDir directory;
  std::string sql = sqlite_schema();
  const auto at = sql.find(from);
  if (at == std::string::npos) return fail(errc::internal, "no '" + from + "' in the schema");
  sql.replace(at, from.size(), to);
  EXPECT_EQ(RawConnection(directory.file()).run(sql), SQLITE_OK);
  const std::string before = schema_of(directory.file());
  const Error error = error_of(directory.file());
  EXPECT_EQ(schema_of(directory.file()), before);
  return error;
}

TEST(SqliteSchema, ItsOwnTextMakesTheTablesThatOpenVerifies) {
  TempDir directory;
  EXPECT_EQ(RawConnection(directory.file()).run(sqlite_schema()), SQLITE_OK);
  const std::string made = schema_of(directory.file());
  EXPECT_EQ(error_of(directory.file()).message, "");
  EXPECT_EQ(schema_of(directory.file()), made);
  TempDir other;
  { open_or_die(other.file()); }
  EXPECT_EQ(schema_of(other.file()), made);
}

TEST(SqliteSchema, WhatIsMissingOrDifferentIsNamed) {
  const Error column = error_after("fail_kind ", "fail_type ");
  EXPECT_EQ(column.code, errc::cannot_open);
  EXPECT_THAT(column.message, HasSubstr("has no column fail_kind"));
  // H26: with another type "00123" and "123" might be one key.
  const Error type = error_after("idem_key      TEXT   ", "idem_key      ANY    ");
  EXPECT_EQ(type.code, errc::cannot_open);
  EXPECT_THAT(type.message, HasSubstr("idem_key is ANY, not TEXT"));
  const Error newer = error_after("VALUES (1, 1, ", "VALUES (1, 2, ");
  EXPECT_EQ(newer.code, errc::cannot_open);
  EXPECT_THAT(newer.message, HasSubstr("version 2"));
}

TEST(SqliteSchema, AUniqueKeyThatIsNotTheTripleIsNoUniqueKey) {
  for (const char* wrong :
       {"INDEX IF NOT EXISTS uk_idem_key ON idempotent_record (tenant, biz_type, idem_key)",
        "UNIQUE INDEX IF NOT EXISTS uk_idem_key ON idempotent_record (tenant, idem_key)",
        "UNIQUE INDEX IF NOT EXISTS uk_idem_key ON idempotent_record (tenant, biz_type, idem_key "
        "COLLATE NOCASE)",
        "UNIQUE INDEX IF NOT EXISTS uk_idem_key ON idempotent_record (tenant, biz_type, idem_key) "
        "WHERE status = 0"}) {
    const Error error = error_after(
        "UNIQUE INDEX IF NOT EXISTS uk_idem_key ON idempotent_record (tenant, biz_type, idem_key)",
        wrong);
    EXPECT_EQ(error.code, errc::cannot_open) << wrong;
    EXPECT_THAT(error.message, HasSubstr("unique key uk_idem_key")) << wrong;
  }
}

TEST(SqliteSchema, AForeignTableOfThatNameIsLeftAlone) {
  TempDir directory;
  RawConnection(directory.file())
      .run("CREATE TABLE idempotent_record (idem_key VARCHAR(128) PRIMARY KEY)");
  const std::string before = schema_of(directory.file());
  EXPECT_EQ(error_of(directory.file()).code, errc::cannot_open);
  EXPECT_EQ(schema_of(directory.file()), before);
}

TEST(SqliteSchema, LivesBesideTheTablesOfTheApplication) {
  TempDir directory;
  RawConnection raw(directory.file());
  raw.run("CREATE TABLE payment (id INTEGER PRIMARY KEY); PRAGMA user_version = 42");
  EXPECT_EQ(error_of(directory.file()).message, "");
  EXPECT_EQ(raw.text("PRAGMA user_version"), "42") << "that one is the application's";
  EXPECT_EQ(raw.text("SELECT count(*) FROM payment"), "0");
}

TEST(SqliteSchema, AMissingIndexIsMadeAgain) {
  TempDir directory;
  { open_or_die(directory.file()); }
  const std::string made = RawConnection(directory.file())
                               .text("SELECT count(*) FROM sqlite_master WHERE type = 'index'");
  RawConnection(directory.file()).run("DROP INDEX idx_idem_lapsed");
  EXPECT_EQ(error_of(directory.file()).message, "");
  EXPECT_EQ(RawConnection(directory.file())
                .text("SELECT count(*) FROM sqlite_master WHERE type = 'index'"),
            made);
}

}  // namespace
}  // namespace idem
