#include "schema.hpp"

#include <algorithm>

#include "errors.hpp"

namespace idem {
namespace mysql {
namespace {

std::string meta_row(std::string_view table) {
  return "INSERT INTO " + std::string(table) +
         "_meta (id, schema_version, version_floor) VALUES (1, " + std::to_string(kSchemaVersion) +
         ", 0)";
}

Error cannot_make(const Error& error, const MysqlOptions& options) {
  return fail(error.code, error.message + "; the table can be made by hand: " +
                              mysql_schema(options.layout.value_or(MysqlOptions::Layout::clustered),
                                           options.table));
}

Error not_there(std::string_view what, const MysqlOptions& options) {
  return fail(errc::cannot_open,
              std::string(what) + " in " + where(options) +
                  ": its tables are not there, or not to be seen by this user; check database and "
                  "'table'; a store is made by its first claim");
}

// The one row of the meta table.
result<void> ensure_meta(Session& session, const MysqlOptions& options, const Budget& budget) {
  const std::string read = "SELECT schema_version FROM " + options.table + "_meta WHERE id = 1";
  auto found = query(session, read, {}, budget);
  if (!found) {
    if (found.error().code != errc::cannot_open) return found.error();
    if (!options.create) return not_there("no table '" + options.table + "_meta'", options);
    if (auto made = query(session, meta_ddl(options.table), {}, budget); !made)
      return cannot_make(made.error(), options);
    found = query(session, read, {}, budget);
    if (!found) return found.error();
  }
  if (found->rows().empty()) {
    // Somebody else may be first: then there is a row, which is what we want.
    if (options.create) (void)query(session, meta_row(options.table), {}, budget);
    found = query(session, read, {}, budget);
    if (!found) return found.error();
    if (found->rows().empty()) {
      return fail(errc::denied, "table '" + options.table +
                                    "_meta' has no row; as its owner: " + meta_row(options.table));
    }
  }
  const std::uint64_t version = unsigned_of(found->rows()[0][0]);
  if (version != kSchemaVersion) {
    return fail(errc::cannot_open, "table '" + options.table + "' is of schema version " +
                                       std::to_string(version) + ", this program knows " +
                                       std::to_string(kSchemaVersion));
  }
  return {};
}

}  // namespace

bool is_table_name(std::string_view name) {
  const auto allowed = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
  };
  return !name.empty() && name.size() <= 48 && std::all_of(name.begin(), name.end(), allowed);
}

// VARBINARY: the only type that compares keys byte for byte, trailing blanks too, on both servers.
// BIGINT times: microseconds since 1970 UTC. DATETIME rounds differently on the two servers, and
// TIMESTAMP moves with the session's time zone and ends in 2038.
std::string records_ddl(MysqlOptions::Layout layout, std::string_view table) {
  const bool clustered = layout == MysqlOptions::Layout::clustered;
  const std::string key = "(tenant, biz_type, idem_key)";
  return "CREATE TABLE IF NOT EXISTS " + std::string(table) + " (\n" +
         (clustered ? "" : "  id            BIGINT UNSIGNED NOT NULL AUTO_INCREMENT,\n") +
         "  tenant        VARBINARY(64) NOT NULL,\n"
         "  biz_type      VARBINARY(32) NOT NULL,\n"
         "  idem_key      VARBINARY(128) NOT NULL,\n"
         "  request_hash  CHAR(64) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,\n"
         "  status        TINYINT UNSIGNED NOT NULL COMMENT '0 processing, 1 success, 2 failed',\n"
         "  owner         BINARY(16) NOT NULL COMMENT 'token of the attempt',\n"
         "  version       BIGINT UNSIGNED NOT NULL COMMENT 'changes on every write',\n"
         "  fence         BIGINT UNSIGNED NOT NULL COMMENT 'version written by the claim',\n"
         "  attempt       INT UNSIGNED NOT NULL,\n"
         "  lease_until   BIGINT NOT NULL COMMENT 'times: microseconds since 1970 UTC; 0: none',\n"
         "  retry_at      BIGINT NOT NULL,\n"
         "  fail_kind     TINYINT UNSIGNED NOT NULL COMMENT '1 retryable, 2 final, 3 abandoned',\n"
         "  flags         TINYINT UNSIGNED NOT NULL COMMENT '1: the result was too large to "
         "keep',\n"
         "  create_time   BIGINT NOT NULL,\n"
         "  update_time   BIGINT NOT NULL,\n"
         "  expires_at    BIGINT NOT NULL,\n"
         "  result_digest VARBINARY(32) NOT NULL COMMENT 'SHA-256 of result_json',\n"
         "  result_json   MEDIUMBLOB NOT NULL,\n" +
         (clustered ? "  PRIMARY KEY " + key + ",\n"
                    : "  PRIMARY KEY (id),\n  UNIQUE KEY uk_idem_key " + key + ",\n") +
         "  KEY idx_idem_expires (expires_at),\n"
         "  KEY idx_idem_lapsed (status, lease_until)\n"
         ") ENGINE=InnoDB ROW_FORMAT=DYNAMIC";
}

std::string meta_ddl(std::string_view table) {
  return "CREATE TABLE IF NOT EXISTS " + std::string(table) +
         "_meta (\n"
         "  id             TINYINT UNSIGNED NOT NULL,\n"
         "  schema_version INT UNSIGNED NOT NULL,\n"
         "  version_floor  BIGINT UNSIGNED NOT NULL COMMENT 'largest version ever removed',\n"
         "  PRIMARY KEY (id)\n"
         ") ENGINE=InnoDB";
}

result<MysqlOptions::Layout> ensure_schema(Session& session, const MysqlOptions& options,
                                           const Budget& budget) {
  auto found = check_records(session, options.table, budget);
  if (!found) return found.error();
  if (!*found) {
    if (!options.create) return not_there("no table '" + options.table + "'", options);
    const auto layout = options.layout.value_or(MysqlOptions::Layout::clustered);
    if (auto made = query(session, records_ddl(layout, options.table), {}, budget); !made)
      return cannot_make(made.error(), options);
    found = check_records(session, options.table, budget);
    if (!found) return found.error();
    if (!*found) {
      return fail(errc::denied, "table '" + options.table + "' was made but cannot be seen");
    }
  }
  if (options.layout && **found != *options.layout) {
    const bool clustered = **found == MysqlOptions::Layout::clustered;
    return fail(errc::cannot_open, "table '" + options.table + "' is of layout " +
                                       (clustered ? "clustered" : "articles") +
                                       ": leave 'layout' away, or name another table");
  }
  if (auto meta = ensure_meta(session, options, budget); !meta) return meta.error();
  return **found;
}

}  // namespace mysql

std::string mysql_schema(MysqlOptions::Layout layout, std::string_view table) {
  return mysql::records_ddl(layout, table) + ";\n" + mysql::meta_ddl(table) + ";\n" +
         mysql::meta_row(table) + ";\n";
}

}  // namespace idem
