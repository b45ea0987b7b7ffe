// A small blocking HTTP server and client for tests, over real sockets on loopback.
#pragma once

#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <functional>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "idem/http_beast.hpp"

namespace idem::http {

// A thread per connection. A handler that answers nothing has its connection cut.
class TinyServer {
 public:
  using Handler = std::function<std::optional<BeastResponse>(const BeastRequest&)>;
  explicit TinyServer(Handler handler);
  ~TinyServer();

  [[nodiscard]] std::uint16_t port() const { return port_; }
  [[nodiscard]] int connections() const { return connections_; }

 private:
  void accept();
  void serve(boost::asio::ip::tcp::socket& socket);

  Handler handler_;
  boost::asio::io_context context_;
  boost::asio::ip::tcp::acceptor acceptor_;
  std::uint16_t port_ = 0;
  std::atomic<int> connections_{0};
  std::mutex mutex_;  // guards what follows
  bool stopping_ = false;
  std::vector<std::shared_ptr<boost::asio::ip::tcp::socket>> sockets_;
  std::vector<std::thread> sessions_;
  std::thread acceptor_thread_;
};

[[nodiscard]] inline ServiceOptions on_clock(Clock& clock) {
  ServiceOptions options;
  options.clock = &clock;
  return options;
}

[[nodiscard]] BeastRequest get(std::string_view target);
[[nodiscard]] BeastRequest post(std::string_view target, std::string_view key,
                                std::string_view body);
[[nodiscard]] BeastResponse reply(unsigned status, std::string_view body);

// A connection that stays open between requests.
class TinyClient {
 public:
  explicit TinyClient(std::uint16_t port);
  // nullopt: the connection was closed without a response.
  std::optional<BeastResponse> ask(const BeastRequest& request);
  void send_bytes(std::string_view bytes);
  // Until the other side closes.
  std::string read_all();

 private:
  boost::asio::io_context context_;
  boost::asio::ip::tcp::socket socket_;
};

// One request on a connection of its own.
[[nodiscard]] BeastResponse fetch(std::uint16_t port, const BeastRequest& request);
// The same, byte for byte, both ways.
[[nodiscard]] std::string fetch_bytes(std::uint16_t port, std::string_view bytes);

}  // namespace idem::http
