#include "database.hpp"

#include <stdexcept>

#include "idem/open.hpp"

namespace orders {

std::unique_ptr<Database> connect(const std::string& text) {
  const auto url = idem::StoreUrl::parse(text).value();
  if (url.scheme() == "sqlite") return connect_sqlite(url);
  if (url.scheme() == "mysql" || url.scheme() == "mariadb") return connect_mysql(url);
  throw std::runtime_error("'" + url.scheme() +
                           ":' is no database of this service; write sqlite:FILE or "
                           "mysql://USER:PASSWORD@HOST:PORT/DATABASE");
}

void make_tables(const std::string& url) {
  (void)idem::open(url).value();  // makes the records' table
  const auto database = connect(url);
  const std::string name(database->name_type());
  database->execute("CREATE TABLE IF NOT EXISTS stock (item " + name +
                        " PRIMARY KEY, num BIGINT NOT NULL CHECK (num >= 0))",
                    {});
  database->execute("CREATE TABLE IF NOT EXISTS orders (trade_no " + name + " NOT NULL, item " +
                        name +
                        " NOT NULL, count BIGINT NOT NULL, state VARCHAR(16) NOT NULL,"
                        " CONSTRAINT uk_trade_no UNIQUE (trade_no))",
                    {});
}

}  // namespace orders
