#include "statements.hpp"

namespace idem::mysql {
namespace {

// Each value may refer to the columns before it: both servers define that order, and our sessions
// do not turn it off (MariaDB's SIMULTANEOUS_ASSIGNMENT).
std::string insert_row(std::string_view time, std::string_view version) {
  return "(?, ?, ?, ?, ?, " + std::string(time) + ", GREATEST(" + std::string(version) +
         ", ?), COALESCE(NULLIF(?, 0), version), ?, ?, "
         "?, ?, IF(status = 0, update_time + ?, 0), IF(status = 2, update_time + ?, 0), "
         "update_time, update_time + ?, ?, ?)";
}

// As insert_row, of a claim: what is the same in all rows is computed before.
constexpr std::string_view kClaimRow =
    "(?, ?, ?, ?, ?, @idem_now, @idem_version, @idem_version, ?, 0, 0, 0, @idem_now + ?, 0, "
    "@idem_now, @idem_now + ?, '', '')";

// Rows, keys or conditions: `item` n times with a separator.
std::string repeated(std::string_view item, std::string_view separator, std::size_t n) {
  std::string text(item);
  for (std::size_t i = 1; i < n; ++i) text.append(separator).append(item);
  return text;
}

constexpr std::string_view kKeyIs = "(tenant = ? AND biz_type = ? AND idem_key = ?)";

// Several keys as a list of rows: the servers plan that in half the time of conditions with OR.
std::string key_is_one_of(std::size_t size) {
  if (size == 1) return std::string(kKeyIs);
  return "(tenant, biz_type, idem_key) IN (" + repeated("(?, ?, ?)", ", ", size) + ")";
}

std::string insert_text(std::string_view table, std::size_t size, std::string_view row) {
  return "INSERT INTO " + std::string(table) +
         " (tenant, biz_type, idem_key, request_hash, owner, update_time, version, fence, attempt, "
         "status, fail_kind, flags, lease_until, retry_at, create_time, expires_at, result_digest, "
         "result_json) VALUES " +
         repeated(row, ", ", size);
}

std::string floor_of(std::string_view table) {
  return "(SELECT version_floor FROM " + std::string(table) + "_meta WHERE id = 1)";
}

std::string load_text(std::string_view table, std::size_t size, bool whole = true) {
  std::string columns(record_columns());
  if (!whole) columns.replace(columns.find("result_digest"), columns.npos, "'', ''");
  return "SELECT " + columns + ", " + std::string(statement_time()) + ", " + floor_of(table) +
         " FROM " + std::string(table) + " WHERE " + key_is_one_of(size);
}

// The version grows with every write, so a row that matched was changed and counts as affected
// whatever the client's flags are; the new version comes back as the insert id. `+ 0`: the key
// finds the row; a search by the index of expires_at would lock rows of others.
std::string replace_text(std::string_view table, std::string_view time) {
  return "UPDATE " + std::string(table) + " SET update_time = " + std::string(time) +
         ", version = LAST_INSERT_ID(GREATEST(version + 1, CAST(update_time AS UNSIGNED), ?))"
         ", fence = COALESCE(NULLIF(?, 0), version), request_hash = ?, owner = ?, attempt = ?"
         ", status = ?, fail_kind = ?, flags = ?, lease_until = IF(status = 0, update_time + ?, 0)"
         ", retry_at = IF(status = 2, update_time + ?, 0)"
         ", create_time = IF(?, update_time, create_time), expires_at = update_time + ?"
         ", result_digest = ?, result_json = ? WHERE " +
         std::string(kKeyIs) + " AND version = ? AND (? OR expires_at + 0 > " + std::string(time) +
         ")";
}

// The insert's own values may be older than its wait for the row. ROW_COUNT() is the insert's.
std::string refresh_fence_text(std::string_view table) {
  const std::string newer =
      "GREATEST(version, CAST(" + std::string(statement_time()) + " AS UNSIGNED))";
  return "UPDATE " + std::string(table) + " SET fence = IF(?, " + newer +
         ", fence), version = " + newer + " WHERE ROW_COUNT() > 0 AND " + std::string(kKeyIs);
}

}  // namespace

std::string_view statement_time() {
  return "? + ? * TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6))";
}

// The session's time zone is UTC.
std::string_view running_time() {
  return "? + ? * TIMESTAMPDIFF(MICROSECOND, '1970-01-01', SYSDATE(6))";
}

std::string_view record_columns() {
  return "tenant, biz_type, idem_key, request_hash, owner, version, fence, attempt, status, "
         "fail_kind, flags, lease_until, retry_at, create_time, update_time, expires_at, "
         "result_digest, result_json";
}

// All values of one SET are computed before the first is set: none may refer to another.
std::string begin_insert_text(std::int64_t base, std::int64_t scale, std::uint64_t floor) {
  const std::string now = std::to_string(base) + " + " + std::to_string(scale) +
                          " * TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6))";
  return "SET autocommit = 0, @idem_above = 0, @idem_now = " + now +
         ", @idem_version = GREATEST(CAST(" + now + " AS UNSIGNED), " + std::to_string(floor + 1) +
         ")";
}

std::string floor_check_text(std::string_view table) {
  return "SELECT @idem_above := version_floor < @idem_version, @idem_now FROM " +
         std::string(table) + "_meta WHERE id = 1";
}

std::string statement_text(Statement statement, std::string_view table, std::size_t rows) {
  const std::string name(table);
  switch (statement) {
    case Statement::insert_claims:
      return insert_text(table, rows, kClaimRow);
    case Statement::insert:
      return insert_text(table, rows, insert_row("@idem_now", "@idem_version"));
    case Statement::joined_insert:
      return insert_text(table, rows,
                         insert_row(statement_time(), "?, CAST(update_time AS UNSIGNED)"));
    case Statement::load:
      return load_text(table, rows);
    case Statement::load_head:
      return load_text(table, rows, false);
    case Statement::replace:
      return replace_text(table, running_time());
    case Statement::joined_replace:
      return replace_text(table, statement_time());
    case Statement::load_locked:
      return load_text(table, rows) + " LOCK IN SHARE MODE";
    case Statement::refresh_fence:
      return refresh_fence_text(table);
    case Statement::lift_fence:
      return "UPDATE " + name + " SET fence = IF(?, ?, fence), version = ? WHERE " +
             std::string(kKeyIs);
    case Statement::remove:
      return "DELETE FROM " + name + " WHERE " + std::string(kKeyIs) +
             " AND version = ? AND (? OR expires_at + 0 <= " + std::string(running_time()) +
             ") AND version <= " + floor_of(table);
    case Statement::raise_floor:
      return "UPDATE " + name + "_meta SET version_floor = GREATEST(version_floor, ?) WHERE id = 1";
    case Statement::clock:
      return "SELECT " + std::string(statement_time()) + ", version_floor FROM " + name +
             "_meta WHERE id = 1";
  }
  return {};
}

}  // namespace idem::mysql
