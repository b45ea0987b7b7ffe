#include "caller.hpp"

#include <boost/mysql/results.hpp>
#include <sstream>

#include "idem/mysql_transaction.hpp"

namespace idem::mysql_test {

namespace sql = boost::mysql;

Caller::Caller(const Database& database) : Caller(server().socket(), database.name()) {}

Caller::Caller(const std::string& socket, const std::string& database) {
  sql::connect_params params;
  params.server_address.emplace_unix_path(socket);
  params.username = "root";
  params.database = database;
  connection_.connect(params);
}

void Caller::execute(std::string_view text) {
  sql::results answer;
  connection_.execute(text, answer);
}

int Caller::try_run(std::string_view text) {
  sql::results answer;
  sql::error_code code;
  sql::diagnostics server_said;
  connection_.execute(text, answer, code, server_said);
  return code.value();
}

void Caller::run(std::string_view text) { EXPECT_EQ(try_run(text), 0) << text; }

std::string Caller::cell(std::string_view text) {
  sql::results answer;
  connection_.execute(text, answer);
  std::ostringstream out;
  out << answer.rows().at(0).at(0);
  return out.str();
}

result<bool> Caller::pay(IdempotencyService& service, const Request& request) {
  return mysql_transact(connection_, [&]() -> result<bool> {
    auto claimed = service.claim(request);
    if (!claimed) return claimed.error();
    auto* mine = std::get_if<Claimed>(&*claimed);
    if (mine == nullptr) return false;
    execute("INSERT INTO payment VALUES ('" + request.key.key + "', '')");
    auto completed = service.complete(mine->lease, "paid");
    if (!completed) return completed.error();
    return true;
  });
}

int pay_once(const Database& database, const Request& request, std::string_view level) {
  Caller caller(database);
  caller.run("SET SESSION TRANSACTION ISOLATION LEVEL " + std::string(level));
  auto store = mysql_in_transaction(caller.connection(), {.row_wait = 20s});
  EXPECT_TRUE(store) << store.error().message;
  IdempotencyService service(*store);
  const auto paid = caller.pay(service, request);
  EXPECT_TRUE(paid) << paid.error().message;
  return paid && *paid ? 1 : 0;
}

}  // namespace idem::mysql_test
