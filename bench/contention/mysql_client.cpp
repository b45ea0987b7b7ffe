#include "contention/mysql_client.hpp"

#include <cstdlib>
#include <string_view>

namespace idem::bench {
namespace {

std::optional<StoreUrl> if_mysql(const std::string& text) {
  auto url = StoreUrl::parse(text);
  if (!url || (url->scheme() != "mysql" && url->scheme() != "mariadb")) return std::nullopt;
  return std::move(*url);
}

// Calls `row(name, value)` for each of two columns. False: the client has words for it.
template <class Row>
bool each_row(MYSQL* connection, const char* query, Row row) {
  if (mysql_query(connection, query) != 0) return false;
  MYSQL_RES* rows = mysql_store_result(connection);
  if (rows == nullptr) return false;
  while (MYSQL_ROW cells = mysql_fetch_row(rows))
    row(std::string_view(cells[0]), std::strtoull(cells[1], nullptr, 10));
  mysql_free_result(rows);
  return true;
}

result<Costs> read_counts(StoreUrl url) {
  auto connection = connect_mysql(std::move(url));
  if (!connection) return connection.error();
  // MySQL would tell ids that are a day old; MariaDB has no such setting, and needs none.
  (void)mysql_query(connection->get(), "SET SESSION information_schema_stats_expiry = 0");
  Costs counts;
  // MySQL does not tell of deadlocks here, MariaDB does.
  const bool told =
      each_row(connection->get(),
               "SHOW GLOBAL STATUS WHERE Variable_name IN"
               " ('Innodb_row_lock_waits', 'Innodb_deadlocks')",
               [&](std::string_view name, std::uint64_t value) {
                 (name == "Innodb_deadlocks" ? counts.deadlocks : counts.lock_waits) = value;
               }) &&
      each_row(connection->get(),
               "SELECT 'ids', COALESCE(SUM(AUTO_INCREMENT), 0) FROM information_schema.TABLES"
               " WHERE TABLE_SCHEMA = DATABASE()",
               [&](std::string_view, std::uint64_t value) { counts.ids = value; });
  if (!told) return fail(errc::unavailable, std::string(mysql_error(connection->get())));
  return counts;
}

}  // namespace

result<MysqlClient> connect_mysql(StoreUrl url) {
  MysqlClient connection(mysql_init(nullptr));
  const std::string socket = url.text("socket").value_or("");
  std::string database = url.path();
  if (database.starts_with('/')) database.erase(0, 1);
  const unsigned port = url.port().value_or(3306);
  if (mysql_real_connect(connection.get(), socket.empty() ? url.host().c_str() : nullptr,
                         url.user().c_str(), url.password().c_str(), database.c_str(), port,
                         socket.empty() ? nullptr : socket.c_str(), 0) == nullptr)
    return fail(errc::unavailable,
                url.redacted() + ": " + std::string(mysql_error(connection.get())));
  return connection;
}

std::optional<StoreUrl> mysql_url(const Place& place) {
  return if_mysql(place.fixture.url.empty() ? place.name : place.fixture.url);
}

std::function<result<Costs>()> mysql_counts(const Place& place) {
  if (!place.is_private) return {};
  const auto url = place.authority.empty() ? mysql_url(place) : if_mysql(place.authority);
  if (!url) return {};
  return [url = *url] { return read_counts(url); };
}

}  // namespace idem::bench
