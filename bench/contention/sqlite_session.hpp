// A SQLite connection as anybody would open one, for what is measured without our store.
#pragma once

#include <sqlite3.h>

#include <cstdint>
#include <memory>
#include <string>

#include "contention/contender.hpp"

namespace idem::bench {

// Used by one thread. Waits for locks as SQLite's own busy_timeout does, and counts those waits.
class SqliteSession {
 public:
  // WAL; `synchronous`: "FULL", "NORMAL".
  [[nodiscard]] static result<std::unique_ptr<SqliteSession>> open(const std::string& path,
                                                                   const std::string& synchronous,
                                                                   Clock& clock);
  ~SqliteSession();
  SqliteSession(const SqliteSession&) = delete;
  SqliteSession& operator=(const SqliteSession&) = delete;

  struct Close {
    void operator()(sqlite3_stmt* statement) const { sqlite3_finalize(statement); }
  };
  using Statement = std::unique_ptr<sqlite3_stmt, Close>;

  [[nodiscard]] sqlite3* handle() const { return handle_; }
  [[nodiscard]] result<void> execute(const std::string& sql);
  [[nodiscard]] result<Statement> prepare(const std::string& sql);
  // Steps and resets; the code of the step.
  int run(sqlite3_stmt* statement);
  // Calls that found a lock, so far.
  [[nodiscard]] std::uint64_t lock_waits() const { return lock_waits_; }
  [[nodiscard]] std::string trouble() const { return sqlite3_errmsg(handle_); }

 private:
  explicit SqliteSession(Clock& clock) : clock_(clock) {}
  static int wait_for_lock(void* self, int waits);

  Clock& clock_;
  sqlite3* handle_ = nullptr;
  std::uint64_t lock_waits_ = 0;
};

// The file of a private or given SQLite store; "" for a database in memory.
[[nodiscard]] std::string sqlite_file(const Place& place);
// What the store at that place does at a commit.
[[nodiscard]] std::string synchronous_of(const Place& place);

}  // namespace idem::bench
