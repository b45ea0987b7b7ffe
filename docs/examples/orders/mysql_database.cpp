#include <boost/asio/io_context.hpp>
#include <boost/mysql/any_connection.hpp>
#include <boost/mysql/results.hpp>
#include <boost/mysql/statement.hpp>
#include <map>
#include <stdexcept>
#include <vector>

#include "database.hpp"
#include "idem/mysql_store.hpp"
#include "idem/mysql_transaction.hpp"

namespace orders {
namespace {

namespace sql = boost::mysql;
using namespace std::chrono_literals;

// A duplicate waits this long for the transaction that holds its key, as SQLite's writers wait.
constexpr auto kRowWait = 10s;

class MysqlDatabase final : public Database {
 public:
  explicit MysqlDatabase(const idem::MysqlOptions& options) {
    if (options.tls == idem::MysqlOptions::Tls::verify) {
      throw std::runtime_error("this example verifies no certificate; write tls=require");
    }
    connection_.connect(idem::mysql_connect_params(options));
    store_ = idem::mysql_in_transaction(connection_, {.table = options.table, .row_wait = kRowWait})
                 .value();
  }

  idem::StorePtr store() override { return store_; }
  [[nodiscard]] std::string_view name_type() const override { return "VARBINARY(128)"; }

  void transact(const std::function<bool()>& unit) override {
    (void)idem::mysql_transact(connection_, [&]() -> idem::result<bool> {
      try {
        return unit();
      } catch (const idem::Exception& error) {
        return idem::fail(error.code(), error.what());  // busy: it is run again
      }
    }).value();
  }

  std::int64_t execute(std::string_view text, std::span<const Value> values) override {
    return static_cast<std::int64_t>(run(text, values).affected_rows());
  }

  std::optional<std::string> text(std::string_view text, std::span<const Value> values) override {
    const sql::results answer = run(text, values);
    if (answer.rows().empty()) return std::nullopt;
    const sql::field_view field = answer.rows()[0][0];
    if (field.is_int64()) return std::to_string(field.as_int64());
    if (field.is_string()) return std::string(field.as_string());
    const auto bytes = field.as_blob();
    return std::string(bytes.begin(), bytes.end());
  }

 private:
  // An exception of Boost.MySQL's that tells of a deadlock is understood by mysql_transact.
  sql::results run(std::string_view text, std::span<const Value> values) {
    auto known = statements_.find(text);
    if (known == statements_.end()) {
      known = statements_.emplace(text, connection_.prepare_statement(text)).first;
    }
    std::vector<sql::field_view> fields;
    for (const Value& value : values) {
      std::visit([&](const auto& one) { fields.emplace_back(one); }, value);
    }
    sql::results answer;
    connection_.execute(known->second.bind(fields.begin(), fields.end()), answer);
    return answer;
  }

  boost::asio::io_context loop_;
  sql::any_connection connection_{loop_};
  std::map<std::string, sql::statement, std::less<>> statements_;
  idem::StorePtr store_;  // borrows the connection
};

}  // namespace

std::unique_ptr<Database> connect_mysql(const idem::StoreUrl& url) {
  return std::make_unique<MysqlDatabase>(idem::mysql_options(url).value());
}

}  // namespace orders
