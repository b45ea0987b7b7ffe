// A stream to a server: TCP, unix socket or TLS over TCP, behind one face.
#pragma once

#include <boost/asio/connect.hpp>
#include <boost/asio/generic/stream_protocol.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/ssl/context.hpp>
#include <boost/asio/ssl/stream.hpp>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "idem/redis_store.hpp"

namespace idem::redis {

// Used by whoever runs its io_context only, but for write_now() and hung_up(), and by one at a
// time. A closed transport's handlers run too, with an error.
class Transport : public std::enable_shared_from_this<Transport> {
 public:
  using ErrorCode = boost::system::error_code;
  using Done = std::function<void(ErrorCode)>;
  using DoneBytes = std::function<void(ErrorCode, std::size_t)>;

  Transport(boost::asio::io_context& io, boost::asio::ssl::context* tls);

  // Resolves, connects and, with TLS, shakes hands: chain and host name verified.
  void open(const RedisOptions& options, Done done);
  void read_some(std::span<char> buffer, DoneBytes done);
  void write_all(std::string_view bytes, DoneBytes done);
  // Without waiting: how many of the bytes it took. None with TLS, or if it cannot write.
  [[nodiscard]] std::size_t write_now(std::string_view bytes);
  // The peer has ended the stream, and nothing is left to be read. A reading is under way.
  [[nodiscard]] bool hung_up();
  void close();

 private:
  using Socket = boost::asio::generic::stream_protocol::socket;

  void opened(ErrorCode error, const std::string& host, const Done& done);

  boost::asio::ip::tcp::resolver resolver_;
  Socket socket_;
  std::optional<boost::asio::ssl::stream<Socket&>> secure_;
  bool closed_ = false;
};

// The client's side of TLS: 1.2 or newer, peers verified against `ca_file`, or the system's
// authorities if it is empty.
[[nodiscard]] result<std::unique_ptr<boost::asio::ssl::context>> make_tls_context(
    const std::string& ca_file);

}  // namespace idem::redis
