// The C client of MySQL and MariaDB: what a measurement without any library of ours is made with.
#pragma once

#include <mysql.h>

#include <memory>
#include <optional>

#include "contention/contender.hpp"

namespace idem::bench {

struct CloseMysql {
  void operator()(MYSQL* connection) const { mysql_close(connection); }
};
using MysqlClient = std::unique_ptr<MYSQL, CloseMysql>;

// unavailable, with the client's words.
[[nodiscard]] result<MysqlClient> connect_mysql(StoreUrl url);

// Where a place is a MySQL or MariaDB.
[[nodiscard]] std::optional<StoreUrl> mysql_url(const Place& place);

}  // namespace idem::bench
