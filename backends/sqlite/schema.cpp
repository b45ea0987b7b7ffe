#include "schema.hpp"

#include <array>
#include <string>
#include <vector>

namespace idem::sqlite {

// STRICT: a value of another type is refused instead of converted ("00123" stays "00123").
// A row id and a unique index instead of WITHOUT ROWID: see README.md for the figures.
const char* const kSchemaSql = R"sql(CREATE TABLE IF NOT EXISTS idempotent_record (
  id            INTEGER PRIMARY KEY,
  tenant        TEXT    NOT NULL,
  biz_type      TEXT    NOT NULL,
  idem_key      TEXT    NOT NULL,
  request_hash  TEXT    NOT NULL,  -- SHA-256 of the request, 64 hexadecimal digits
  status        INTEGER NOT NULL,  -- 0 processing, 1 success, 2 failed
  owner         TEXT    NOT NULL,  -- token of the attempt, 32 hexadecimal digits
  version       INTEGER NOT NULL,  -- changes on every write
  fence         INTEGER NOT NULL,  -- version written by the claim of this attempt
  attempt       INTEGER NOT NULL,
  lease_until   INTEGER NOT NULL,  -- all times: microseconds since 1970 UTC; 0: none
  retry_at      INTEGER NOT NULL,
  fail_kind     INTEGER NOT NULL,  -- 0 none, 1 retryable, 2 final, 3 abandoned
  flags         INTEGER NOT NULL,  -- 1: result_json is size and digest of a result not kept
  create_time   INTEGER NOT NULL,
  update_time   INTEGER NOT NULL,
  expires_at    INTEGER NOT NULL,
  result_digest BLOB    NOT NULL,  -- SHA-256 of result_json; empty if that is empty
  result_json   BLOB    NOT NULL   -- any bytes
) STRICT;
CREATE UNIQUE INDEX IF NOT EXISTS uk_idem_key ON idempotent_record (tenant, biz_type, idem_key);
CREATE INDEX IF NOT EXISTS idx_idem_expires ON idempotent_record (expires_at, status);
CREATE INDEX IF NOT EXISTS idx_idem_lapsed ON idempotent_record (lease_until) WHERE status = 0;
CREATE TABLE IF NOT EXISTS idempotent_meta (
  id             INTEGER PRIMARY KEY CHECK (id = 1),
  schema_version INTEGER NOT NULL,
  time_floor     INTEGER NOT NULL,  -- largest time written: the store's clock is never behind it
  version_floor  INTEGER NOT NULL   -- largest version removed: fences grow over incarnations
) STRICT;
INSERT OR IGNORE INTO idempotent_meta VALUES (1, 1, 0, 0);
)sql";

namespace {

struct Column {
  std::string_view name;
  std::string_view type;
};

constexpr std::array kColumns = {Column{"id", "INTEGER"},          Column{"tenant", "TEXT"},
                                 Column{"biz_type", "TEXT"},       Column{"idem_key", "TEXT"},
                                 Column{"request_hash", "TEXT"},   Column{"status", "INTEGER"},
                                 Column{"owner", "TEXT"},          Column{"version", "INTEGER"},
                                 Column{"fence", "INTEGER"},       Column{"attempt", "INTEGER"},
                                 Column{"lease_until", "INTEGER"}, Column{"retry_at", "INTEGER"},
                                 Column{"fail_kind", "INTEGER"},   Column{"flags", "INTEGER"},
                                 Column{"create_time", "INTEGER"}, Column{"update_time", "INTEGER"},
                                 Column{"expires_at", "INTEGER"},  Column{"result_digest", "BLOB"},
                                 Column{"result_json", "BLOB"}};

Error not_ours(const Connection& connection, const std::string& what) {
  return fail(errc::cannot_open,
              connection.path() + ": " + what +
                  "; nothing was changed: name another file, or move that table "
                  "away and open again (`idem store schema` shows what we make)");
}

result<bool> exists(Connection& connection, const std::string& name) {
  const auto count =
      connection.integer_of("SELECT count(*) FROM sqlite_master WHERE name = '" + name + "'");
  if (!count) return count.error();
  return *count != 0;
}

result<void> verify_version(Connection& connection) {
  const auto version =
      connection.integer_of("SELECT schema_version FROM idempotent_meta WHERE id = 1");
  if (!version) return version.error();
  if (*version == kSchemaVersion) return {};
  return fail(errc::cannot_open, connection.path() + ": its schema is version " +
                                     std::to_string(*version) + ", this library knows version " +
                                     std::to_string(kSchemaVersion) +
                                     "; nothing was changed: use the newer library");
}

result<void> verify_columns(Connection& connection) {
  auto info =
      connection.prepare("SELECT type FROM pragma_table_info('idempotent_record') WHERE name = ?1");
  if (!info) return info.error();
  for (const Column& column : kColumns) {
    info->bind_text(1, column.name);
    const ResetAtExit reset(*info);
    const int code = info->step();
    if (code == SQLITE_DONE)
      return not_ours(connection,
                      "table idempotent_record has no column " + std::string(column.name));
    if (code != SQLITE_ROW) return connection.error(code, Phase::open, "cannot verify");
    if (info->text(0) != column.type)
      return not_ours(connection, "column idempotent_record." + std::string(column.name) + " is " +
                                      std::string(info->text(0)) + ", not " +
                                      std::string(column.type));
  }
  return {};
}

// Without a unique key over exactly the triple, compared byte for byte, two claims could both win.
result<void> verify_unique_key(Connection& connection) {
  const auto keys = connection.integer_of(R"sql(
    SELECT count(*) FROM pragma_index_list('idempotent_record') AS list
    WHERE list."unique" = 1 AND list.partial = 0
      AND (SELECT group_concat(name || ' ' || coll, ', ')
           FROM (SELECT name, coll FROM pragma_index_xinfo(list.name) WHERE key = 1 ORDER BY seqno))
          = 'tenant BINARY, biz_type BINARY, idem_key BINARY')sql");
  if (!keys) return keys.error();
  if (*keys == 0)
    return not_ours(connection,
                    "table idempotent_record has no unique key uk_idem_key (tenant, biz_type, "
                    "idem_key) with BINARY comparison");
  return {};
}

}  // namespace

result<void> verify_schema(Connection& connection) {
  const auto meta = exists(connection, "idempotent_meta");
  if (!meta) return meta.error();
  if (!*meta)
    return fail(errc::cannot_open, connection.path() +
                                       ": the tables are not there: open it once as a store, or "
                                       "run the schema");
  if (auto version = verify_version(connection); !version) return version;
  if (auto columns = verify_columns(connection); !columns) return columns;
  return verify_unique_key(connection);
}

namespace {

// Inside a write transaction.
result<void> create(Connection& connection) {
  const auto meta = exists(connection, "idempotent_meta");
  if (!meta) return meta.error();
  if (*meta) {
    if (auto version = verify_version(connection); !version) return version;
  }
  const auto record = exists(connection, "idempotent_record");
  if (!record) return record.error();
  if (*record) {
    if (auto columns = verify_columns(connection); !columns) return columns;
  }
  if (const int code = connection.run(kSchemaSql); code != SQLITE_OK)
    return connection.error(code, Phase::open, "cannot make the tables in");
  return verify_schema(connection);
}

}  // namespace

result<void> ensure_schema(Connection& connection) {
  const auto parts = connection.integer_of(
      "SELECT count(*) FROM sqlite_master WHERE name IN ('idempotent_record', 'uk_idem_key', "
      "'idx_idem_expires', 'idx_idem_lapsed', 'idempotent_meta')");
  if (!parts) return parts.error();
  if (*parts == 5) return verify_schema(connection);
  if (const int code = connection.run("BEGIN IMMEDIATE"); code != SQLITE_OK)
    return connection.error(code, Phase::open, "cannot write to");
  auto made = create(connection);
  if (made) {
    if (const int code = connection.run("COMMIT"); code != SQLITE_OK)
      made = connection.error(code, Phase::open, "cannot make the tables in");
  }
  connection.roll_back();
  return made;
}

}  // namespace idem::sqlite
