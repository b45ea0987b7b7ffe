// One connection to one server, shared by all callers: requests leave in the order they came, as
// many as there are in one write, and replies find their requests by that order alone.
//
// The caller's own thread writes if nothing is under way; what comes meanwhile makes up the next
// write, which goes out with the last reply, or before if it is large enough to keep the server
// busy (two are under way at most). So concurrent callers gather without waiting for company, and
// what a hung server did not get is surely not applied. Claims of one key that gather are asked
// once.
//
// It connects when there is something to send. A lost connection ends what was sent as `unknown`;
// what was not sent waits for the next one. Tries are spaced by a growing, jittered pause. A server
// that owes replies and says nothing for a while is given up.
#pragma once

#include <array>
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
#include "loop.hpp"
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
  Connection(Loop& loop, boost::asio::ssl::context* tls, RedisOptions options);
  ~Connection();

  // Thread safe; what does not happen at once happens while somebody waits at the loop.
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
  using Lock = std::unique_lock<std::mutex>;

  // A reply, or several, that the server owes.
  struct Due {
    ExchangePtr exchange;  // null: what was asked behind exchanges
    bool copies = false;   // WAIT, not TIME
    bool last = false;     // of its write
  };
  struct Ended {
    ExchangePtr exchange;
    Error error{};
  };

  // Runs `work` locked, if the session is still the present one; then wakes whose exchange ended.
  template <class Work>
  void locked(const std::shared_ptr<Session>& session, Work work);
  void wake(Lock& lock);

  // Locked, all of them.
  [[nodiscard]] bool rides(const ExchangePtr& exchange);
  void kick();
  void kick_later();
  void connect();
  void greet();
  void take_greeting();
  [[nodiscard]] bool may_write() const;
  void write();
  void ask_behind(bool time, const Behind& copies);
  void send_out();
  void read();
  void take_replies();
  void take_reply(Reply&& reply);
  void end(ExchangePtr exchange, Error error = {});
  void lost(Error why);
  void pause_before_next_try();
  void refuse_all(const Error& why);
  void watch();
  void look();

  Loop& loop_;
  boost::asio::io_context& io_;
  boost::asio::ssl::context* tls_;
  const RedisOptions options_;
  const std::string name_;
  ServerTime time_;

  std::mutex mutex_;  // guards all below down to told_mutex_
  State state_ = State::down;
  std::shared_ptr<Session> session_;
  std::deque<ExchangePtr> queue_;  // not sent
  std::size_t queued_bytes_ = 0;
  std::array<Exchange*, 64> claims_{};    // in queue_, by the hash of their keys; null: not known
  std::deque<Due> in_flight_;             // sent; replies are due in this order
  std::size_t writes_ = 0;                // that are not answered whole
  std::vector<ExchangePtr> timeless_;     // their own replies came: the time behind them is due
  std::vector<ExchangePtr> unconfirmed_;  // and theirs, too: the copies are due
  ExchangePtr hello_;                     // the handshake, while greeting
  std::vector<Ended> ended_;              // to be told once this is unlocked
  bool writing_ = false;
  bool kick_posted_ = false;
  bool closing_ = false;                     // submit_close() is on its way
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
