// An application with a connection of its own, which pays in the transaction of its claim.
#pragma once

#include <boost/asio/io_context.hpp>
#include <boost/mysql/any_connection.hpp>
#include <memory>
#include <string>
#include <string_view>

#include "idem/service.hpp"
#include "support.hpp"

namespace idem::mysql_test {

// Over a server's socket, as root. Its table: payment (name, note).
class Caller {
 public:
  explicit Caller(const Database& database);
  Caller(const std::string& socket, const std::string& database);

  [[nodiscard]] boost::mysql::any_connection& connection() { return connection_; }
  // Throws Boost.MySQL's exception on an error.
  void execute(std::string_view sql);
  // Fails the test on an error.
  void run(std::string_view sql);
  // The server's error number; 0: none.
  int try_run(std::string_view sql);
  [[nodiscard]] std::string cell(std::string_view sql);

  // Pays for the request in one unit with its record; true if this call did.
  [[nodiscard]] result<bool> pay(IdempotencyService& service, const Request& request);

 private:
  boost::asio::io_context loop_;
  boost::mysql::any_connection connection_{loop_};
};

// On a connection of its own, at this isolation level: 1 if it paid, 0 if it was paid already.
// Fails the test on an error.
[[nodiscard]] int pay_once(const Database& database, const Request& request,
                           std::string_view level);

}  // namespace idem::mysql_test
