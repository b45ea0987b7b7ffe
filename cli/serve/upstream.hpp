// The service behind the proxy: one pool of kept connections per worker thread.
#pragma once

#include <boost/asio/awaitable.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/beast/core/tcp_stream.hpp>
#include <deque>
#include <optional>
#include <string>

#include "idem/http_beast.hpp"
#include "metrics.hpp"

namespace idem::serve {

// How one request to the upstream ended, and its answer if there is one.
struct UpstreamAnswer {
  UpstreamEnd end = UpstreamEnd::not_sent;
  http::BeastResponse response;  // answered; too_large: status and headers
};

struct UpstreamOptions {
  std::string host;
  std::string port;
  Micros connect_time{};
  Micros answer_time{};
  std::uint64_t body_bytes_max = 0;
};

// Used by one thread: the one that runs `context`. A request is sent once; only one that was surely
// not received, or that may be repeated by anybody (GET), is sent again on a new connection.
class Upstream {
 public:
  Upstream(boost::asio::io_context& context, UpstreamOptions options, Clock& clock,
           Metrics& metrics);

  boost::asio::awaitable<UpstreamAnswer> send(const http::BeastRequest& request);

  // Lets the idle connections go.
  void close_idle() { idle_.clear(); }

 private:
  using Stream = boost::beast::tcp_stream;
  struct Idle {
    Stream stream;
    Time since{};
  };

  boost::asio::awaitable<std::optional<Stream>> connect();
  std::optional<Stream> take_idle();
  boost::asio::awaitable<UpstreamAnswer> send_on(Stream& stream, const http::BeastRequest& request,
                                                 bool& answer_began);
  void keep(Stream stream);

  boost::asio::io_context& context_;
  const UpstreamOptions options_;
  Clock& clock_;
  Metrics& metrics_;
  std::deque<Idle> idle_;  // the last one is the freshest
};

}  // namespace idem::serve
