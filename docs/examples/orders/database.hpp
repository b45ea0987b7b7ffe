// What the order service needs of a database: one connection, its transactions, and an idempotency
// store inside them. One implementation per database (sqlite_database.cpp).
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <variant>

#include "idem/store.hpp"

namespace orders {

using Value = std::variant<std::int64_t, std::string_view>;

// Used by one thread at a time. What goes wrong throws std::runtime_error.
class Database {
 public:
  Database() = default;
  Database(const Database&) = delete;
  Database& operator=(const Database&) = delete;
  virtual ~Database() = default;

  // On this connection: what it writes lasts if and only if the transaction commits.
  [[nodiscard]] virtual idem::StorePtr store() = 0;

  // One writer at a time: others wait at their begin, and then see what was committed.
  virtual void begin() = 0;
  virtual void commit() = 0;
  virtual void rollback() noexcept = 0;

  // '?' stands for the values. Returns the number of rows that changed.
  virtual std::int64_t execute(std::string_view sql, std::span<const Value> values) = 0;
  // The first column of the first row; nullopt: no row.
  [[nodiscard]] virtual std::optional<std::string> text(std::string_view sql,
                                                        std::span<const Value> values) = 0;
};

// "sqlite:FILE", as idem::open takes it. Makes the tables of idem and of the order service if they
// are not there.
[[nodiscard]] std::unique_ptr<Database> connect(const std::string& url);
[[nodiscard]] std::unique_ptr<Database> connect_sqlite(const std::string& url);

inline constexpr std::string_view kSchema[] = {
    "CREATE TABLE IF NOT EXISTS stock ("
    "  item VARCHAR(64) PRIMARY KEY,"
    "  num  BIGINT NOT NULL CHECK (num >= 0))",
    "CREATE TABLE IF NOT EXISTS orders ("
    "  trade_no VARCHAR(128) NOT NULL,"
    "  item     VARCHAR(64) NOT NULL,"
    "  count    BIGINT NOT NULL,"
    "  state    VARCHAR(16) NOT NULL,"
    "  CONSTRAINT uk_trade_no UNIQUE (trade_no))",
};

}  // namespace orders
