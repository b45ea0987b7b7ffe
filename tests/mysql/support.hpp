// Shared by the tests of the MySQL store: a private server, raw connections to it, short calls.
#pragma once

#include <gtest/gtest.h>

#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "idem/mysql_store.hpp"
#include "idem/service.hpp"
#include "idem/testing/server_fixture.hpp"

namespace idem::mysql_test {

using namespace std::chrono_literals;  // NOLINT: tests

// The program's server, started at first use.
[[nodiscard]] testing::ServerFixture& server();

// A connection that does exactly what it is told, with the server's own defaults.
class Raw {
 public:
  // "" for no database; root unless a user is named.
  explicit Raw(std::string_view database = "", std::string_view user = "root");
  Raw(testing::ServerFixture& of, std::string_view database, std::string_view user = "root");
  ~Raw();
  Raw(const Raw&) = delete;
  Raw& operator=(const Raw&) = delete;

  // The server's error number; 0: none. -1: the connection is gone.
  int try_run(std::string_view sql);
  // Fails the test on an error.
  void run(std::string_view sql);
  // The first cell as text; "" if there is no row. Fails the test on an error.
  [[nodiscard]] std::string cell(std::string_view sql);
  [[nodiscard]] std::uint32_t id() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

// A database of its own, dropped at the end.
class Database {
 public:
  explicit Database(std::string_view defaults = "");
  Database(testing::ServerFixture& of, std::string_view defaults);
  ~Database();
  Database(const Database&) = delete;
  Database& operator=(const Database&) = delete;

  [[nodiscard]] const std::string& name() const { return name_; }
  [[nodiscard]] MysqlOptions options(
      MysqlOptions::Layout layout = MysqlOptions::Layout::clustered) const;

 private:
  testing::ServerFixture& server_;
  std::string name_;
};

// Fails the test if it does not open.
[[nodiscard]] StorePtr open(const MysqlOptions& options);

[[nodiscard]] Draft claim_of(const Owner& owner, Duration lease = std::chrono::seconds(600));
[[nodiscard]] Draft success_of(const Record& held, std::string_view result);

[[nodiscard]] Answer insert(IdempotencyStore& store, KeyRef key, const Draft& draft);
[[nodiscard]] Answer replace(IdempotencyStore& store, KeyRef key, std::uint64_t expected,
                             const Draft& draft);
[[nodiscard]] Answer load(IdempotencyStore& store, KeyRef key);
[[nodiscard]] Answer remove(IdempotencyStore& store, KeyRef key, std::uint64_t expected);

// Asks again every few milliseconds until it is so; false after ten seconds.
[[nodiscard]] bool comes_true(const std::function<bool()>& question);

[[nodiscard]] Request request(std::string_view key);

// True if at least so many sessions wait for a row to insert, soon.
[[nodiscard]] bool waiting_for_rows(Raw& root, int sessions);

// IDEM_NIGHTLY is set: what is expensive runs as often as the scenarios say.
[[nodiscard]] bool nightly();

inline const KeyRef kKey{"", "pay", "k1"};

// Each test once per layout.
class EachLayout : public ::testing::TestWithParam<MysqlOptions::Layout> {
 protected:
  [[nodiscard]] MysqlOptions options() const { return database_.options(GetParam()); }
  [[nodiscard]] const Database& database() const { return database_; }

 private:
  Database database_;
};
#define IDEM_EACH_LAYOUT(suite)                                                           \
  INSTANTIATE_TEST_SUITE_P(                                                               \
      Layouts, suite,                                                                     \
      ::testing::Values(MysqlOptions::Layout::clustered, MysqlOptions::Layout::articles), \
      [](const auto& test) {                                                              \
        return test.param == MysqlOptions::Layout::clustered ? "clustered" : "articles";  \
      })

}  // namespace idem::mysql_test
