#include "admin.hpp"

namespace idem::mysql {
namespace {

boost::mysql::field_view blob(std::string_view text) {
  return boost::mysql::field_view(
      boost::mysql::blob_view(reinterpret_cast<const unsigned char*>(text.data()), text.size()));
}

// Conditions of a query, and their parameters in order.
struct Where {
  std::string text;
  Fields fields;

  void add_now(TimeSource time, std::string_view before, std::string_view after = "") {
    text += std::string(before) + std::string(statement_time()) + std::string(after);
    add_time(fields, time);
  }
};

Where where_of(const ListQuery& query, const Key& after, TimeSource time) {
  Where where;
  where.add_now(time, " WHERE expires_at > ");
  if (query.status) {
    where.text += " AND status = ?";
    where.fields.emplace_back(std::uint64_t{static_cast<std::uint8_t>(*query.status)});
  }
  if (query.tenant) {
    where.text += " AND tenant = ?";
    where.fields.push_back(blob(*query.tenant));
  }
  if (query.biz_type) {
    where.text += " AND biz_type = ?";
    where.fields.push_back(blob(*query.biz_type));
  }
  if (query.lapsed_for) {
    where.add_now(time, " AND status = 0 AND lease_until <= ");
    where.add_now(time, " AND update_time + ? <= ");
    // The length stands before the two of the time just added.
    where.fields.insert(where.fields.end() - 2,
                        boost::mysql::field_view(query.lapsed_for->count()));
  }
  if (!query.cursor.empty()) {
    where.text +=
        " AND (tenant > ? OR (tenant = ? AND (biz_type > ? OR (biz_type = ? AND idem_key > ?))))";
    for (const std::string* part :
         {&after.tenant, &after.tenant, &after.biz_type, &after.biz_type, &after.key})
      where.fields.push_back(blob(*part));
  }
  return where;
}

}  // namespace

result<Page> list(const Work& work, const ListQuery& asked) {
  Key after;
  if (!asked.cursor.empty()) {
    auto parsed = parse_storage_name(asked.cursor);
    if (!parsed) return parsed.error();
    after = std::move(*parsed);
  }
  Where where = where_of(asked, after, work.time);
  const std::string text = "SELECT " + std::string(record_columns()) + " FROM " + work.table +
                           where.text + " ORDER BY tenant, biz_type, idem_key LIMIT ?";
  where.fields.emplace_back(std::uint64_t{asked.limit} + 1);
  const auto found = query(work.session, text, where.fields, work.budget);
  if (!found) return found.error();

  Page page;
  for (const auto row : found->rows()) {
    if (page.items.size() == asked.limit) {
      if (!page.items.empty()) page.cursor = storage_name(page.items.back().key);
      break;
    }
    Listed& listed = page.items.emplace_back();
    listed.key = Key(read_head(row).key);
    if (auto read = read_record(row, listed.record); !read) return read.error();
  }
  Where time;
  time.add_now(work.time, "SELECT ");
  const auto clock = query(work.session, time.text, time.fields, work.budget);
  if (!clock) return clock.error();
  page.now = Time{Micros(signed_of(clock->rows().at(0)[0]))};
  return page;
}

result<StoreStats> stats(const Work& work) {
  Where counts;
  counts.add_now(work.time,
                 "SELECT status, CAST(COUNT(*) AS SIGNED), CAST(COALESCE(SUM(expires_at <= ",
                 "), 0) AS SIGNED) FROM " + work.table + " GROUP BY status");
  const auto found = query(work.session, counts.text, counts.fields, work.budget);
  if (!found) return found.error();
  StoreStats stats;
  for (const auto row : found->rows()) {
    const std::uint64_t count = unsigned_of(row[1]);
    stats.expired += unsigned_of(row[2]);
    switch (unsigned_of(row[0])) {
      case 0:
        stats.processing = count;
        break;
      case 1:
        stats.success = count;
        break;
      default:
        stats.failed += count;
    }
  }
  const auto size = query(work.session,
                          "SELECT CAST(COALESCE(SUM(data_length + index_length), 0) AS UNSIGNED) "
                          "FROM information_schema.tables WHERE table_schema = DATABASE() AND "
                          "table_name = '" +
                              work.table + "'",
                          {}, work.budget);
  if (!size) return size.error();
  stats.bytes = unsigned_of(size->rows().at(0)[0]);
  return stats;
}

std::string backend_name(std::string_view version) {
  const bool mariadb = version.find("MariaDB") != version.npos;
  return std::string(mariadb ? "mariadb " : "mysql ") + std::string(version);
}

std::uint64_t result_bytes_max(std::uint64_t packet_bytes_max) {
  constexpr std::uint64_t kRoom = 8192;  // for what a packet holds beside the result
  return std::min(kMysqlResultBytesMax, packet_bytes_max > kRoom ? packet_bytes_max - kRoom : 0);
}

result<Durability> durability(Session& session, const Budget& budget) {
  const auto found = query(session,
                           "SELECT CAST(@@innodb_flush_log_at_trx_commit AS SIGNED), "
                           "CAST(@@log_bin AS SIGNED), CAST(@@sync_binlog AS SIGNED)",
                           {}, budget);
  if (!found) return found.error();
  const auto row = found->rows().at(0);
  const std::int64_t flush = signed_of(row[0]);
  const bool binlog = signed_of(row[1]) != 0;
  // After a power cut a binary log that lags behind decides which transactions are kept.
  if (flush == 0) return Durability::none;
  if (flush == 1 && (!binlog || signed_of(row[2]) == 1)) return Durability::power;
  return Durability::process;
}

}  // namespace idem::mysql
