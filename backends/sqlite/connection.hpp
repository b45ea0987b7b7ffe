// A connection to a SQLite database, its prepared statements, and what its errors mean.
#pragma once

#include <sqlite3.h>

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "idem/error.hpp"
#include "idem/time.hpp"

namespace idem::sqlite {

// One prepared statement, made once and used again and again. Parameters are bound by position,
// from 1; text and blobs are borrowed until the next reset.
class Statement {
 public:
  Statement() = default;

  void bind(int index, std::int64_t value);
  void bind(int index, Time value) { bind(index, value.time_since_epoch().count()); }
  void bind_version(int index, std::uint64_t value) {
    bind(index, static_cast<std::int64_t>(value));
  }
  void bind_text(int index, std::string_view text);
  void bind_blob(int index, std::string_view bytes);
  void bind_null(int index);

  // SQLITE_ROW, SQLITE_DONE, or an extended error code. An error of a bind shows here.
  [[nodiscard]] int step();
  // Steps to the end; SQLITE_DONE or an error. Resets.
  [[nodiscard]] int run();
  void reset();

  [[nodiscard]] bool is_null(int column) const;
  [[nodiscard]] std::int64_t integer(int column) const;
  [[nodiscard]] Time time(int column) const { return Time(Micros(integer(column))); }
  [[nodiscard]] std::uint64_t version(int column) const {
    return static_cast<std::uint64_t>(integer(column));
  }
  // The bytes as stored; valid until the next step or reset.
  [[nodiscard]] std::string_view text(int column) const;
  [[nodiscard]] std::string_view blob(int column) const;

 private:
  friend class Connection;
  struct Finalize {
    void operator()(sqlite3_stmt* statement) const { sqlite3_finalize(statement); }
  };
  std::unique_ptr<sqlite3_stmt, Finalize> handle_;
  int bind_error_ = SQLITE_OK;
};

// Resets a statement at the end of a scope, so that it holds no read transaction open.
class ResetAtExit {
 public:
  explicit ResetAtExit(Statement& statement) : statement_(statement) {}
  ~ResetAtExit() { statement_.reset(); }
  ResetAtExit(const ResetAtExit&) = delete;
  ResetAtExit& operator=(const ResetAtExit&) = delete;

 private:
  Statement& statement_;
};

// When an error came up decides what it means.
enum class Phase : std::uint8_t {
  open,    // nothing was written, the store is not there
  work,    // before COMMIT: surely not applied
  commit,  // at COMMIT: an I/O error leaves it open whether it was applied
};

struct CloseConnection {
  bool owned = true;
  void operator()(sqlite3* handle) const {
    if (owned) sqlite3_close_v2(handle);
  }
};

// Used by one thread at a time.
class Connection {
 public:
  // Opens the file, or makes it if it is not there and `create`. `path`: absolute, or ":memory:".
  [[nodiscard]] static result<Connection> open(const std::string& path, bool create,
                                               Micros busy_timeout);

  // The caller's own connection, which it keeps, with its own busy handler.
  [[nodiscard]] static Connection borrow(sqlite3* handle);

  // How long statements wait for other processes' locks: until `deadline` of the system clock, or
  // busy_timeout from the first conflict on if it is Time{}.
  void wait_until(Time deadline);

  [[nodiscard]] result<Statement> prepare(std::string_view sql);
  // For statements without parameters and rows.
  [[nodiscard]] int run(const char* sql);
  // The first column of the first row as text; "" if there is none.
  [[nodiscard]] result<std::string> text_of(std::string_view sql);
  [[nodiscard]] result<std::int64_t> integer_of(std::string_view sql);

  // Undoes the transaction, if one is under way.
  void roll_back();
  [[nodiscard]] bool in_transaction() const { return sqlite3_get_autocommit(handle_.get()) == 0; }

  // What the last call's error code means, with SQLite's own text.
  [[nodiscard]] Error error(int code, Phase phase, std::string_view doing) const;

  [[nodiscard]] sqlite3* handle() const { return handle_.get(); }
  [[nodiscard]] const std::string& path() const { return path_; }

 private:
  struct BusyWait {
    Micros timeout;
    Time deadline;  // as given to wait_until()
    Time until;     // of the wait under way
  };
  static int on_busy(void* wait, int count);

  std::string path_;
  std::unique_ptr<BusyWait> wait_;
  std::unique_ptr<sqlite3, CloseConnection> handle_;
};

}  // namespace idem::sqlite
