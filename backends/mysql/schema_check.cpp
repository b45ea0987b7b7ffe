// What an existing table must be like. Columns of the application's own may stand beside ours.
#include <algorithm>
#include <array>

#include "schema.hpp"

namespace idem::mysql {
namespace {

struct Column {
  std::string_view name;
  std::string_view types;  // allowed data types, separated by blanks
  std::uint64_t bytes;     // at least; 0: not asked
  bool is_unsigned;
  std::string_view ddl;
};

constexpr std::string_view kTimeDdl = "BIGINT NOT NULL";
constexpr std::string_view kSmallDdl = "TINYINT UNSIGNED NOT NULL";
constexpr std::string_view kVersionDdl = "BIGINT UNSIGNED NOT NULL";

constexpr std::array kColumns = {
    Column{"tenant", "varbinary", kTenantBytesMax, false, "VARBINARY(64) NOT NULL"},
    Column{"biz_type", "varbinary", kBizTypeBytesMax, false, "VARBINARY(32) NOT NULL"},
    Column{"idem_key", "varbinary", kKeyBytesMax, false, "VARBINARY(128) NOT NULL"},
    Column{"request_hash", "char varchar binary varbinary", 64, false,
           "CHAR(64) CHARACTER SET ascii COLLATE ascii_bin NOT NULL"},
    Column{"status", "tinyint smallint int bigint", 0, false, kSmallDdl},
    Column{"owner", "binary", 16, false, "BINARY(16) NOT NULL"},
    Column{"version", "bigint", 0, true, kVersionDdl},
    Column{"fence", "bigint", 0, true, kVersionDdl},
    Column{"attempt", "int bigint", 0, true, "INT UNSIGNED NOT NULL"},
    Column{"lease_until", "bigint", 0, false, kTimeDdl},
    Column{"retry_at", "bigint", 0, false, kTimeDdl},
    Column{"fail_kind", "tinyint smallint int bigint", 0, false, kSmallDdl},
    Column{"flags", "tinyint smallint int bigint", 0, false, kSmallDdl},
    Column{"create_time", "bigint", 0, false, kTimeDdl},
    Column{"update_time", "bigint", 0, false, kTimeDdl},
    Column{"expires_at", "bigint", 0, false, kTimeDdl},
    Column{"result_digest", "varbinary", 32, false, "VARBINARY(32) NOT NULL"},
    Column{"result_json", "mediumblob longblob", 0, false, "MEDIUMBLOB NOT NULL"},
};

bool is_one_of(std::string_view word, std::string_view words) {
  while (!words.empty()) {
    const std::string_view first = words.substr(0, words.find(' '));
    if (first == word) return true;
    words.remove_prefix(std::min(words.size(), first.size() + 1));
  }
  return false;
}

Error mend(const std::string& table, const Column& column, bool there) {
  return fail(errc::cannot_open, "table '" + table + "': column '" + std::string(column.name) +
                                     (there ? "' is not what it must be" : "' is missing") +
                                     "; ALTER TABLE " + table + (there ? " MODIFY " : " ADD ") +
                                     std::string(column.name) + " " + std::string(column.ddl));
}

// Name, data type, octets, column type, nullable, has a default or makes its own value.
bool fits(boost::mysql::row_view found, const Column& column) {
  const std::string_view type = bytes_of(found[1]);
  const bool is_unsigned = bytes_of(found[3]).find("unsigned") != std::string_view::npos;
  return is_one_of(type, column.types) && unsigned_of(found[2]) >= column.bytes &&
         (is_unsigned || !column.is_unsigned) && bytes_of(found[4]) == "NO";
}

result<void> check_columns(const boost::mysql::results& found, const std::string& table) {
  for (const Column& column : kColumns) {
    const auto rows = found.rows();
    const auto row = std::find_if(rows.begin(), rows.end(), [&](const auto& candidate) {
      return bytes_of(candidate[0]) == column.name;
    });
    if (row == rows.end()) return mend(table, column, false);
    if (!fits(*row, column)) return mend(table, column, true);
  }
  for (const auto row : found.rows()) {
    const std::string_view name = bytes_of(row[0]);
    const bool ours = std::any_of(kColumns.begin(), kColumns.end(),
                                  [&](const Column& column) { return column.name == name; });
    if (ours || unsigned_of(row[5]) != 0) continue;
    return fail(errc::cannot_open, "table '" + table + "': column '" + std::string(name) +
                                       "' is not ours and has no default; ALTER TABLE " + table +
                                       " ALTER " + std::string(name) + " SET DEFAULT ...");
  }
  return {};
}

// A unique key over exactly the three columns, each whole.
result<MysqlOptions::Layout> check_keys(const boost::mysql::results& found,
                                        const std::string& table) {
  bool unique = false;
  for (const auto row : found.rows()) {
    if (bytes_of(row[1]) != "tenant,biz_type,idem_key" || unsigned_of(row[2]) != 0) continue;
    if (bytes_of(row[0]) == "PRIMARY") return MysqlOptions::Layout::clustered;
    unique = true;
  }
  if (unique) return MysqlOptions::Layout::articles;
  return fail(errc::cannot_open,
              "table '" + table + "': no unique key keeps one record per key; ALTER TABLE " +
                  table + " ADD UNIQUE KEY uk_idem_key (tenant, biz_type, idem_key)");
}

std::string name_literal(const std::string& table) { return "'" + table + "'"; }

}  // namespace

result<std::optional<MysqlOptions::Layout>> check_records(Session& session,
                                                          const std::string& table,
                                                          const Budget& budget) {
  const std::string here =
      " WHERE table_schema = DATABASE() AND table_name = " + name_literal(table);
  const auto engine =
      query(session, "SELECT engine FROM information_schema.tables" + here, {}, budget);
  if (!engine) return engine.error();
  if (engine->rows().empty()) return std::optional<MysqlOptions::Layout>();
  if (bytes_of(engine->rows()[0][0]) != "InnoDB") {
    return fail(errc::cannot_open, "table '" + table + "' is not transactional; ALTER TABLE " +
                                       table + " ENGINE=InnoDB");
  }
  const auto columns = query(
      session,
      "SELECT column_name, LOWER(data_type), CAST(COALESCE(character_octet_length, 0) AS UNSIGNED),"
      " LOWER(column_type), is_nullable, CAST(column_default IS NOT NULL OR is_nullable = 'YES' OR "
      "extra LIKE '%auto_increment%' OR extra LIKE '%GENERATED%' AS UNSIGNED)"
      " FROM information_schema.columns" +
          here,
      {}, budget);
  if (!columns) return columns.error();
  if (auto checked = check_columns(*columns, table); !checked) return checked.error();
  const auto keys = query(
      session,
      "SELECT index_name, GROUP_CONCAT(column_name ORDER BY seq_in_index SEPARATOR ','), "
      "CAST(SUM(non_unique) + COUNT(sub_part) AS UNSIGNED) FROM information_schema.statistics" +
          here + " GROUP BY index_name",
      {}, budget);
  if (!keys) return keys.error();
  const auto layout = check_keys(*keys, table);
  if (!layout) return layout.error();
  return std::optional(*layout);
}

}  // namespace idem::mysql
