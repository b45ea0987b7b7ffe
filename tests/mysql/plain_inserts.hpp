// What an application writes that claims with one INSERT of its own: a table, and connections that
// insert into it; and the most that its server can do.
#pragma once

#include <condition_variable>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <vector>

#include "support.hpp"

namespace idem::mysql_test {

// Thread safe. The table has the articles' columns, its key as the layout has it.
class PlainInserts {
 public:
  PlainInserts(const Database& database, std::size_t connections,
               MysqlOptions::Layout layout = MysqlOptions::Layout::clustered);
  ~PlainInserts();

  // One row, committed by itself, on any free connection. The server's error number: 1062 if the
  // key is there.
  int insert(const std::string& key);

  // So many INSERTs of a key that is there, one behind the other inside the server: what it costs
  // to refuse one, without a round trip. 0, or the server's error number. MariaDB alone.
  int refuse_inside(const std::string& key, std::size_t times);

 private:
  class Connection;
  [[nodiscard]] std::unique_ptr<Connection> take();
  void give_back(std::unique_ptr<Connection> one);

  std::mutex mutex_;
  std::condition_variable returned_;
  std::vector<std::unique_ptr<Connection>> free_;
};

// What the server can do: one connection that sends claims of new keys, so many in one INSERT, into
// the table of a store, and nothing of ours around it.
class ReadyBatches {
 public:
  ReadyBatches(const Database& database, std::size_t rows, std::string_view table);
  ~ReadyBatches();

  // Committed by itself. The server's error number.
  int insert(std::span<const std::string> keys);

 private:
  class Connection;
  std::unique_ptr<Connection> connection_;
};

}  // namespace idem::mysql_test
