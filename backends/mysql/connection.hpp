// Connections: our own, whose every wait ends by a deadline, and one borrowed from a caller.
#pragma once

#include <boost/asio/cancellation_signal.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ssl/context.hpp>
#include <boost/mysql/any_connection.hpp>
#include <boost/mysql/pipeline.hpp>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "errors.hpp"
#include "idem/mysql_store.hpp"
#include "idem/time.hpp"

namespace idem::mysql {

// What a session needs of a connection. Not thread safe, but may move between threads.
class Link {
 public:
  Link() = default;
  Link(const Link&) = delete;
  Link& operator=(const Link&) = delete;
  virtual ~Link() = default;

  // Sends all stages at once and reads all replies. `none`: every stage got a reply, which may be
  // an error of its own. `broken`: some stage got none; the connection is not usable any more.
  [[nodiscard]] virtual Fault run(const boost::mysql::pipeline_request& request,
                                  std::vector<boost::mysql::stage_response>& replies,
                                  Micros limit) = 0;

  [[nodiscard]] bool usable() const { return usable_; }

 protected:
  // What the end of a pipeline means, if no deadline cut it short.
  [[nodiscard]] Fault end_of_run(const boost::mysql::error_code& code,
                                 const std::vector<boost::mysql::stage_response>& replies,
                                 const boost::mysql::diagnostics& server_said);

  bool usable_ = false;
};

// A caller's connection. As the caller's own statements, ours have no deadline: the server's wait
// for rows has one.
class BorrowedLink final : public Link {
 public:
  explicit BorrowedLink(boost::mysql::any_connection& connection) : connection_(connection) {
    usable_ = true;
  }
  [[nodiscard]] Fault run(const boost::mysql::pipeline_request& request,
                          std::vector<boost::mysql::stage_response>& replies,
                          Micros limit) override;

 private:
  boost::mysql::any_connection& connection_;
};

// The waiting thread drives the connection's own event loop, so there is no other thread and no
// queue between a caller and its reply.
class Connection final : public Link {
 public:
  // `tls` is borrowed; nullptr only without TLS.
  Connection(const MysqlOptions& options, boost::asio::ssl::context* tls);

  [[nodiscard]] result<void> connect(const MysqlOptions& options, Micros limit);

  [[nodiscard]] Fault run(const boost::mysql::pipeline_request& request,
                          std::vector<boost::mysql::stage_response>& replies,
                          Micros limit) override;

  // True if a round trip succeeds within the limit.
  [[nodiscard]] bool alive(Micros limit);

  // Tells the server good-bye, waits for it no longer than the limit.
  void close(Micros limit);

 private:
  // Starts an operation and drives it to its end. nullopt: the deadline came first; the connection
  // is not usable any more.
  template <class Start>
  std::optional<boost::mysql::error_code> await(Micros limit, Start start);

  // Members an abandoned operation may still refer to stand before the loop that holds it.
  boost::mysql::connect_params params_;
  boost::mysql::diagnostics diagnostics_;
  std::optional<boost::mysql::error_code> done_;
  boost::asio::cancellation_signal cancel_;
  boost::asio::io_context loop_{1};
  boost::mysql::any_connection connection_;
};

// The TLS settings of a store. cannot_open: the file of the authorities cannot be read.
[[nodiscard]] result<std::unique_ptr<boost::asio::ssl::context>> tls_context(
    const MysqlOptions& options);

// "host:port/database", or the socket's path instead of host and port.
[[nodiscard]] std::string where(const MysqlOptions& options);

}  // namespace idem::mysql
