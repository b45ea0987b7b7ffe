// What the order service needs of a database: one connection, its transactions, and an idempotency
// store inside them. One implementation per database: sqlite_database.cpp, mysql_database.cpp.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <variant>

#include "idem/store.hpp"
#include "idem/store_url.hpp"

namespace orders {

using Value = std::variant<std::int64_t, std::string_view>;

// Used by one thread at a time. What goes wrong throws; the connection is then of no more use.
class Database {
 public:
  Database() = default;
  Database(const Database&) = delete;
  Database& operator=(const Database&) = delete;
  virtual ~Database() = default;

  // On this connection: what it writes lasts if and only if the transaction commits.
  [[nodiscard]] virtual idem::StorePtr store() = 0;

  // Runs `unit` in a transaction: committed if it answers true, rolled back if it answers false or
  // throws. What the database undoes for another transaction's sake is run again, from its start.
  virtual void transact(const std::function<bool()>& unit) = 0;

  // '?' stands for the values. Returns the number of rows that changed; the service's updates
  // change every row they match.
  virtual std::int64_t execute(std::string_view sql, std::span<const Value> values) = 0;
  // The first column of the first row; nullopt: no row.
  [[nodiscard]] virtual std::optional<std::string> text(std::string_view sql,
                                                        std::span<const Value> values) = 0;
  // The column type of names that are compared byte for byte, as keys are.
  [[nodiscard]] virtual std::string_view name_type() const = 0;
};

// "sqlite:FILE" or "mysql://USER:PASSWORD@HOST:PORT/DATABASE", as idem::open takes it.
[[nodiscard]] std::unique_ptr<Database> connect(const std::string& url);
[[nodiscard]] std::unique_ptr<Database> connect_sqlite(const idem::StoreUrl& url);
[[nodiscard]] std::unique_ptr<Database> connect_mysql(const idem::StoreUrl& url);

// Makes the tables of idem and of the order service if they are not there.
void make_tables(const std::string& url);

}  // namespace orders
