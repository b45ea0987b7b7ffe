#include "plain_inserts.hpp"

#include <boost/mysql/results.hpp>
#include <boost/mysql/statement.hpp>

#include "caller.hpp"

namespace idem::mysql_test {
namespace {

std::string table_sql(std::string_view name, bool clustered) {
  const std::string id = clustered ? "" : "id BIGINT UNSIGNED NOT NULL AUTO_INCREMENT, ";
  const std::string keys = clustered ? "PRIMARY KEY (tenant, biz_type, idem_key)"
                                     : "PRIMARY KEY (id), UNIQUE KEY uk_idem_key (tenant, "
                                       "biz_type, idem_key)";
  return "CREATE TABLE " + std::string(name) + " (" + id +
         "tenant VARBINARY(64) NOT NULL, biz_type VARBINARY(32) NOT NULL, idem_key VARBINARY(128) "
         "NOT NULL, request_hash CHAR(64) CHARACTER SET ascii NOT NULL, status TINYINT NOT NULL, "
         "owner BINARY(16) NOT NULL, attempt INT NOT NULL, expires_at BIGINT NOT NULL, " +
         keys + ") ENGINE=InnoDB";
}

std::string insert_sql(std::string_view table, std::string_view key) {
  return "INSERT INTO " + std::string(table) +
         " (tenant, biz_type, idem_key, request_hash, status, owner, attempt, expires_at) "
         "VALUES ('', 'pay', " +
         std::string(key) + ", REPEAT('a', 64), 0, REPEAT('b', 16), 1, 4102444800000000)";
}

}  // namespace

class PlainInserts::Connection {
 public:
  Connection(const Database& database, std::string_view table)
      : table_(table),
        caller_(database),
        statement_(caller_.connection().prepare_statement(insert_sql(table, "?"))) {}
  int insert(const std::string& key) {
    boost::mysql::results answer;
    boost::mysql::error_code code;
    boost::mysql::diagnostics server_said;
    caller_.connection().execute(statement_.bind(key), answer, code, server_said);
    return code.value();
  }
  int refuse_inside(const std::string& key, std::size_t times) {
    return caller_.try_run(
        "BEGIN NOT ATOMIC DECLARE left_over INT DEFAULT " + std::to_string(times) +
        "; DECLARE CONTINUE HANDLER FOR 1062 BEGIN END; WHILE left_over > 0 DO " +
        insert_sql(table_, "'" + key + "'") + "; SET left_over = left_over - 1; END WHILE; END");
  }

 private:
  const std::string table_;
  Caller caller_;
  boost::mysql::statement statement_;
};

PlainInserts::PlainInserts(const Database& database, std::size_t connections,
                           MysqlOptions::Layout layout) {
  const bool clustered = layout == MysqlOptions::Layout::clustered;
  const std::string table = clustered ? "plain" : "plain_articles";
  Caller(database).run(table_sql(table, clustered));
  for (std::size_t i = 0; i < connections; ++i) {
    free_.push_back(std::make_unique<Connection>(database, table));
  }
}

PlainInserts::~PlainInserts() = default;

std::unique_ptr<PlainInserts::Connection> PlainInserts::take() {
  std::unique_lock lock(mutex_);
  returned_.wait(lock, [&] { return !free_.empty(); });
  auto one = std::move(free_.back());
  free_.pop_back();
  return one;
}

void PlainInserts::give_back(std::unique_ptr<Connection> one) {
  const std::lock_guard guard(mutex_);
  free_.push_back(std::move(one));
  returned_.notify_one();
}

int PlainInserts::insert(const std::string& key) {
  auto one = take();
  const int error = one->insert(key);
  give_back(std::move(one));
  return error;
}

int PlainInserts::refuse_inside(const std::string& key, std::size_t times) {
  auto one = take();
  const int error = one->refuse_inside(key, times);
  give_back(std::move(one));
  return error;
}

class ReadyBatches::Connection {
 public:
  Connection(const Database& database, std::size_t rows, std::string_view table)
      : caller_(database), statement_(caller_.connection().prepare_statement(text(rows, table))) {}
  int insert(std::span<const std::string> keys) {
    fields_.clear();
    for (const std::string& key : keys) fields_.emplace_back(key);
    boost::mysql::results answer;
    boost::mysql::error_code code;
    boost::mysql::diagnostics server_said;
    caller_.connection().execute(statement_.bind(fields_.begin(), fields_.end()), answer, code,
                                 server_said);
    return code.value();
  }

 private:
  static std::string text(std::size_t rows, std::string_view table) {
    const std::string row =
        "('', 'pay', ?, REPEAT('a', 64), 0, REPEAT('b', 16), 1, 1, 1, 4102444800000000, 0, 0, 0, "
        "4102444800000000, 4102444800000000, 4102444800000000, '', '')";
    std::string all = row;
    for (std::size_t i = 1; i < rows; ++i) all += ", " + row;
    return "INSERT INTO " + std::string(table) +
           " (tenant, biz_type, idem_key, request_hash, status, owner, version, fence, attempt, "
           "lease_until, retry_at, fail_kind, flags, create_time, update_time, expires_at, "
           "result_digest, result_json) VALUES " +
           all;
  }

  Caller caller_;
  boost::mysql::statement statement_;
  std::vector<boost::mysql::field_view> fields_;
};

ReadyBatches::ReadyBatches(const Database& database, std::size_t rows, std::string_view table)
    : connection_(std::make_unique<Connection>(database, rows, table)) {}

ReadyBatches::~ReadyBatches() = default;

int ReadyBatches::insert(std::span<const std::string> keys) { return connection_->insert(keys); }

}  // namespace idem::mysql_test
