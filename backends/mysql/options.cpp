#include <algorithm>

#include "idem/mysql_store.hpp"
#include "schema.hpp"

namespace idem {
namespace {

constexpr std::string_view kForm =
    "mysql://user:password@host:3306/database?table=idempotent_record";

Error bad(std::string message) {
  return fail(errc::invalid_argument, message + ", as in " + std::string(kForm));
}

result<MysqlOptions::Tls> parse_tls(std::string_view text) {
  if (text == "disable") return MysqlOptions::Tls::disable;
  if (text == "enable") return MysqlOptions::Tls::enable;
  if (text == "require") return MysqlOptions::Tls::require;
  if (text == "verify") return MysqlOptions::Tls::verify;
  return fail(
      errc::invalid_argument,
      "parameter 'tls' is disable, enable, require or verify, not '" + std::string(text) + "'");
}

result<MysqlOptions::Layout> parse_layout(std::string_view text) {
  if (text == "clustered") return MysqlOptions::Layout::clustered;
  if (text == "articles") return MysqlOptions::Layout::articles;
  return fail(errc::invalid_argument,
              "parameter 'layout' is clustered or articles, not '" + std::string(text) + "'");
}

result<void> read_words(StoreUrl& url, MysqlOptions& options) {
  if (auto table = url.text("table")) options.table = *table;
  if (!mysql::is_table_name(options.table)) {
    return fail(errc::invalid_argument,
                "parameter 'table': 1 to 48 letters, digits and _, not '" + options.table + "'");
  }
  if (auto layout = url.text("layout")) {
    const auto parsed = parse_layout(*layout);
    if (!parsed) return parsed.error();
    options.layout = *parsed;
  }
  if (auto tls = url.text("tls")) {
    const auto parsed = parse_tls(*tls);
    if (!parsed) return parsed.error();
    options.tls = *parsed;
  }
  if (auto ca = url.text("ca")) options.ca = *ca;
  if (!options.ca.empty() && options.tls != MysqlOptions::Tls::verify) {
    return fail(errc::invalid_argument, "parameter 'ca' needs tls=verify: nothing else reads it");
  }
  if (auto socket = url.text("socket")) {
    options.socket = *socket;
    if (options.socket.empty() || options.socket.front() != '/')
      return fail(errc::invalid_argument, "parameter 'socket' is the absolute path of a socket");
    if (options.tls == MysqlOptions::Tls::require || options.tls == MysqlOptions::Tls::verify)
      return fail(errc::invalid_argument, "a unix socket has no TLS: leave 'tls' away");
  }
  return {};
}

result<void> read_numbers(StoreUrl& url, MysqlOptions& options) {
  const auto connections = url.count("connections");
  if (!connections) return connections.error();
  if (*connections) options.connections = static_cast<std::size_t>(**connections);
  if (options.connections < 1 || options.connections > 64)
    return fail(errc::invalid_argument, "parameter 'connections' is 1 to 64");
  const auto timeout = url.duration("timeout");
  if (!timeout) return timeout.error();
  if (*timeout) options.timeout = **timeout;
  if (options.timeout > Duration(std::chrono::hours(1)))
    return fail(errc::invalid_argument, "parameter 'timeout' is at most 1h");
  const auto least = url.durability("min_durability");
  if (!least) return least.error();
  options.min_durability = *least;
  return {};
}

}  // namespace

result<MysqlOptions> mysql_options(const StoreUrl& given) {
  StoreUrl url = given;
  MysqlOptions options;
  if (auto words = read_words(url, options); !words) return words.error();
  if (auto numbers = read_numbers(url, options); !numbers) return numbers.error();
  if (auto known = url.check_all_known(); !known) return known.error();

  if (!url.has_authority()) return bad("a server stands after " + url.scheme() + "://");
  if (options.socket.empty() && url.host().empty()) return bad("the host is missing");
  if (!options.socket.empty() && url.port())
    return fail(errc::invalid_argument, "a socket has no port: give one of the two");
  options.host = url.host();
  if (url.port()) options.port = *url.port();
  options.user = url.user();
  options.password = url.password();
  std::string_view database = url.path();
  if (!database.empty() && database.front() == '/') database.remove_prefix(1);
  if (database.empty()) return bad("the database is missing");
  if (database.find('/') != std::string_view::npos || database.size() > 64)
    return bad("'" + std::string(database) + "' is not a database's name");
  options.database = database;
  return options;
}

}  // namespace idem
