#include <sqlite3.h>

#include <stdexcept>

#include "database.hpp"
#include "idem/sqlite_store.hpp"

namespace orders {
namespace {

class SqliteDatabase final : public Database {
 public:
  explicit SqliteDatabase(const std::string& path) {
    if (sqlite3_open(path.c_str(), &handle_) != SQLITE_OK) broken("open " + path);
    for (const char* pragma : {"PRAGMA busy_timeout=10000", "PRAGMA synchronous=FULL"}) run(pragma);
    store_ = idem::sqlite_in_transaction(handle_).value();
  }
  ~SqliteDatabase() override {
    store_.reset();
    sqlite3_close(handle_);
  }

  idem::StorePtr store() override { return store_; }
  [[nodiscard]] std::string_view name_type() const override { return "TEXT"; }

  void transact(const std::function<bool()>& unit) override {
    // One writer at a time. Not a plain BEGIN: a transaction that read first may find at its first
    // write that it is too late.
    run("BEGIN IMMEDIATE");
    try {
      run(unit() ? "COMMIT" : "ROLLBACK");
    } catch (...) {
      sqlite3_exec(handle_, "ROLLBACK", nullptr, nullptr, nullptr);
      throw;
    }
  }

  std::int64_t execute(std::string_view sql, std::span<const Value> values) override {
    const Statement statement = prepare(sql, values);
    if (sqlite3_step(statement.get()) != SQLITE_DONE) broken(sql);
    return sqlite3_changes(handle_);
  }

  std::optional<std::string> text(std::string_view sql, std::span<const Value> values) override {
    const Statement statement = prepare(sql, values);
    const int step = sqlite3_step(statement.get());
    if (step == SQLITE_DONE) return std::nullopt;
    if (step != SQLITE_ROW) broken(sql);
    const auto* bytes = reinterpret_cast<const char*>(sqlite3_column_text(statement.get(), 0));
    return std::string(bytes == nullptr ? "" : bytes);
  }

 private:
  using Statement = std::unique_ptr<sqlite3_stmt, int (*)(sqlite3_stmt*)>;

  [[noreturn]] void broken(std::string_view what) const {
    throw std::runtime_error(std::string(what) + ": " + sqlite3_errmsg(handle_));
  }

  void run(const char* sql) {
    if (sqlite3_exec(handle_, sql, nullptr, nullptr, nullptr) != SQLITE_OK) broken(sql);
  }

  Statement prepare(std::string_view sql, std::span<const Value> values) {
    sqlite3_stmt* raw = nullptr;
    if (sqlite3_prepare_v2(handle_, sql.data(), static_cast<int>(sql.size()), &raw, nullptr) !=
        SQLITE_OK) {
      broken(sql);
    }
    Statement statement(raw, &sqlite3_finalize);
    int place = 0;
    for (const Value& value : values) {
      ++place;
      if (const auto* number = std::get_if<std::int64_t>(&value)) {
        sqlite3_bind_int64(raw, place, *number);
      } else {
        const auto words = std::get<std::string_view>(value);
        sqlite3_bind_text(raw, place, words.data(), static_cast<int>(words.size()),
                          SQLITE_TRANSIENT);
      }
    }
    return statement;
  }

  sqlite3* handle_ = nullptr;
  idem::StorePtr store_;
};

}  // namespace

std::unique_ptr<Database> connect_sqlite(const idem::StoreUrl& url) {
  // "sqlite:///a.db" is a.db: the slash that ends the empty host is not part of the path.
  return std::make_unique<SqliteDatabase>(url.path().substr(url.has_authority() ? 1 : 0));
}

}  // namespace orders
