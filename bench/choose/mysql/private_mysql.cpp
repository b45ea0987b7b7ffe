#include "choose/private_mysql.hpp"

#include "idem/open.hpp"
#include "idem/testing/mysql_server.hpp"

namespace idem::bench {

result<Fixture> private_mysql(Durability tier, const OpenOptions& options) {
  const char* const flush = tier == Durability::process ? "2" : "0";
  auto server =
      testing::MysqlServer::start({std::string("--innodb-flush-log-at-trx-commit=") + flush});
  if (!server) return server.error();
  Fixture fixture;
  fixture.url = (*server)->socket_url("mysql");
  fixture.owner = std::shared_ptr<testing::MysqlServer>(std::move(*server));
  auto store = open(fixture.url, options);
  if (!store) return store.error();
  fixture.store = std::move(*store);
  return fixture;
}

}  // namespace idem::bench
