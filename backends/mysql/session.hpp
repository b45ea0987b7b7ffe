// A connection made ours: strict, UTC, READ COMMITTED, whatever the server's defaults are; with its
// prepared statements. And the exchange: several statements sent at once.
#pragma once

#include <array>
#include <boost/mysql/results.hpp>
#include <boost/mysql/statement.hpp>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "budget.hpp"
#include "connection.hpp"
#include "rows.hpp"
#include "statements.hpp"

namespace idem::mysql {

// How long a statement waits for a row that another transaction holds: `busy` after it. The
// smallest that both servers know.
inline constexpr Micros kRowWait = std::chrono::seconds(1);
// To connect and make the connection ours.
inline constexpr Micros kConnectLimit = std::chrono::seconds(2);

class Session {
 public:
  // unavailable, denied, cannot_open. `tls` as Connection's.
  [[nodiscard]] static result<std::unique_ptr<Session>> open(const MysqlOptions& options,
                                                             boost::asio::ssl::context* tls,
                                                             Micros limit);

  // On a caller's connection, which it leaves as it is: its settings are the caller's.
  [[nodiscard]] static std::unique_ptr<Session> borrow(boost::mysql::any_connection& connection,
                                                       std::string table);

  // A statement prepared at first use (one round trip).
  [[nodiscard]] Fault prepare(Statement statement, std::size_t size_index, const Budget& budget);
  [[nodiscard]] boost::mysql::statement prepared(Statement statement, std::size_t index) const {
    return *statements_[static_cast<std::size_t>(statement)][index];
  }

  [[nodiscard]] Link& link() { return *link_; }
  // Only of one that open() made.
  [[nodiscard]] Connection& connection() { return static_cast<Connection&>(*link_); }
  [[nodiscard]] const std::string& server_version() const { return server_version_; }
  [[nodiscard]] std::uint64_t packet_bytes_max() const { return packet_bytes_max_; }
  // A wait for a row that was too long undoes the whole transaction, not the statement alone.
  [[nodiscard]] bool rolls_back_on_wait() const { return rolls_back_on_wait_; }

  // Of no more use after the present exchange. A borrowed one is its owner's to give up.
  void discard() { discarded_ = !borrowed_; }
  [[nodiscard]] bool usable() const { return link_->usable() && !discarded_; }

  // When it was last given back, by the machine's clock; kept by the pool.
  Time idle_since{};

 private:
  Session(std::string table, std::unique_ptr<Link> link, bool borrowed)
      : table_(std::move(table)), link_(std::move(link)), borrowed_(borrowed) {}
  [[nodiscard]] result<void> settle_in(const MysqlOptions& options, Micros limit);

  std::string table_;
  std::unique_ptr<Link> link_;
  bool borrowed_;
  std::string server_version_;
  std::uint64_t packet_bytes_max_ = 0;
  bool rolls_back_on_wait_ = false;
  bool discarded_ = false;
  std::array<std::array<std::optional<boost::mysql::statement>, kSizes>, kStatements> statements_;
};

// Statements that go out together and are executed in order, each whatever became of those before.
// One exchange, one round trip. Used once.
class Exchange {
 public:
  Exchange(Session& session, const Budget& budget) : session_(session), budget_(budget) {}

  // Returns the statement's place. `fields` are copied.
  std::size_t add(Statement statement, std::size_t size_index, const Fields& fields);
  std::size_t add(std::string_view text);

  // none: every statement got its reply; fault(place) tells which.
  // broken: not all did: what was written, if anything, is not known.
  // refused: nothing was executed.
  [[nodiscard]] Fault run();

  [[nodiscard]] std::size_t size() const { return size_; }
  [[nodiscard]] Fault fault(std::size_t place, std::string_view what);
  // Of kCommit. After a fault the connection may be left in a transaction, and is discarded.
  [[nodiscard]] Fault commit_fault(std::size_t place);
  // Only of a place without a fault.
  [[nodiscard]] const boost::mysql::results& results(std::size_t place) const {
    return replies_[place].get_results();
  }
  [[nodiscard]] std::uint64_t affected(std::size_t place) const {
    return results(place).affected_rows();
  }

 private:
  Session& session_;
  const Budget& budget_;
  boost::mysql::pipeline_request request_;
  std::vector<boost::mysql::stage_response> replies_;
  std::size_t size_ = 0;
  Fault fault_;  // of a preparation
};

// One statement of text, for administration. Its parameters are filled in by preparing it.
[[nodiscard]] result<boost::mysql::results> query(Session& session, std::string_view text,
                                                  const Fields& fields, const Budget& budget);

}  // namespace idem::mysql
