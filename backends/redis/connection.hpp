// One connection to one server, shared by all callers: requests leave in the order they came, as
// many as there are in one write, and replies find their requests by that order alone.
//
// One batch is under way at a time; what comes meanwhile makes up the next one. So concurrent
// callers gather without waiting for company, and what a hung server did not get is surely not
// applied.
//
// It connects when there is something to send. A lost connection ends what was sent as `unknown`;
// what was not sent waits for the next one. Tries are spaced by a growing, jittered pause. A server
// that owes replies and says nothing for a while is given up.
#pragma once

#include <atomic>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ssl/context.hpp>
#include <boost/asio/steady_timer.hpp>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "exchange.hpp"
#include "idem/error.hpp"
#include "idem/redis_store.hpp"
#include "server_time.hpp"

namespace idem::redis {

// What the server says of itself in the handshake.
struct ServerGreeting {
  std::string version;
  std::string role;  // "master", "replica"
  std::string mode;  // "standalone", "cluster", "sentinel"
};

class Connection : public std::enable_shared_from_this<Connection> {
 public:
  // Uses host, port, socket, tls, user, password, database and the timeouts of `options`. `tls` may
  // be null without TLS. All borrowed but the options.
  Connection(boost::asio::io_context& io, boost::asio::ssl::context* tls, RedisOptions options);
  ~Connection();

  // Thread safe.
  void submit(ExchangePtr exchange);
  void submit_close();   // ends what is there; the next submit reconnects
  void submit_review();  // after an abandon(): a line on which nobody waits is given up
  [[nodiscard]] Error trouble() const;            // why the last try or connection ended
  [[nodiscard]] ServerGreeting greeting() const;  // of the last handshake
  [[nodiscard]] std::uint64_t attempts() const;   // tries to connect
  [[nodiscard]] ServerTime& time() { return time_; }
  [[nodiscard]] const std::string& name() const { return name_; }  // "host:port"

 private:
  struct Session;  // one try and the connection it becomes: what its handlers hold on to
  enum class State : std::uint8_t { down, connecting, greeting, ready, pausing };

  void drain();
  void kick();
  void connect();
  void greet();
  void take_greeting();
  void write();
  void read();
  bool take_replies();
  void lost(Error why);
  void pause_before_next_try();
  void refuse_all(const Error& why);
  void watch();
  void look();

  boost::asio::io_context& io_;
  boost::asio::ssl::context* tls_;
  const RedisOptions options_;
  const std::string name_;
  ServerTime time_;

  std::mutex inbox_mutex_;
  std::vector<ExchangePtr> inbox_;
  bool drain_posted_ = false;

  // The thread of the connections only.
  State state_ = State::down;
  std::shared_ptr<Session> session_;
  std::deque<ExchangePtr> queue_;      // not sent
  std::deque<ExchangePtr> in_flight_;  // sent; replies are due in this order
  ExchangePtr hello_;                  // the handshake, while greeting
  bool writing_ = false;
  boost::asio::steady_timer connect_timer_;  // of one try, or of the pause between two
  boost::asio::steady_timer watch_timer_;
  bool watching_ = false;
  bool heard_ = false;                    // since the last look of the watch
  const Exchange* due_before_ = nullptr;  // what it found due then; only compared
  int failed_tries_ = 0;
  std::minstd_rand random_;

  mutable std::mutex told_mutex_;
  Error trouble_{};
  ServerGreeting greeting_;
  std::atomic<std::uint64_t> attempts_{0};
};

}  // namespace idem::redis
