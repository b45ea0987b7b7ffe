#include "transport.hpp"

#include <boost/asio/local/stream_protocol.hpp>
#include <boost/asio/ssl/host_name_verification.hpp>
#include <boost/asio/write.hpp>
#include <cerrno>
#include <memory>
#include <vector>

namespace idem::redis {

namespace asio = boost::asio;

namespace {

// Finds a dead peer of an idle connection within half a minute; harmless where it does not work.
void keep_alive(asio::generic::stream_protocol::socket& socket) {
  const auto set = [&](int level, int name, int value) {
    (void)::setsockopt(socket.native_handle(), level, name, &value, sizeof(value));
  };
  set(SOL_SOCKET, SO_KEEPALIVE, 1);
  set(IPPROTO_TCP, TCP_KEEPIDLE, 10);
  set(IPPROTO_TCP, TCP_KEEPINTVL, 5);
  set(IPPROTO_TCP, TCP_KEEPCNT, 3);
  set(IPPROTO_TCP, TCP_NODELAY, 1);
}

}  // namespace

Transport::Transport(asio::io_context& io, asio::ssl::context* tls) : resolver_(io), socket_(io) {
  if (tls != nullptr) secure_.emplace(socket_, *tls);
}

void Transport::open(const RedisOptions& options, Done done) {
  if (!options.socket.empty()) {
    const asio::local::stream_protocol::endpoint endpoint(options.socket);
    socket_.async_connect(endpoint, std::move(done));
    return;
  }
  resolver_.async_resolve(
      options.host, std::to_string(options.port),
      [self = shared_from_this(), host = options.host, done = std::move(done)](
          ErrorCode error, const asio::ip::tcp::resolver::results_type& found) mutable {
        if (error || self->closed_) return done(error ? error : asio::error::operation_aborted);
        std::vector<asio::generic::stream_protocol::endpoint> endpoints;
        for (const auto& entry : found) endpoints.emplace_back(entry.endpoint());
        auto all = std::make_shared<decltype(endpoints)>(std::move(endpoints));
        asio::async_connect(self->socket_, *all,
                            [self, all, host, done](ErrorCode failed, const auto& /*endpoint*/) {
                              self->opened(failed, host, done);
                            });
      });
}

void Transport::opened(ErrorCode error, const std::string& host, const Done& done) {
  if (error) return done(error);
  keep_alive(socket_);
  if (!secure_) return done({});
  ErrorCode not_an_address;
  asio::ip::make_address(host, not_an_address);
  if (not_an_address) ::SSL_set_tlsext_host_name(secure_->native_handle(), host.c_str());
  secure_->set_verify_callback(asio::ssl::host_name_verification(host));
  secure_->async_handshake(asio::ssl::stream_base::client,
                           [self = shared_from_this(), done](ErrorCode failed) { done(failed); });
}

void Transport::read_some(std::span<char> buffer, DoneBytes done) {
  const asio::mutable_buffer room(buffer.data(), buffer.size());
  if (secure_) {
    secure_->async_read_some(room, std::move(done));
  } else {
    socket_.async_read_some(room, std::move(done));
  }
}

void Transport::write_all(std::string_view bytes, DoneBytes done) {
  if (secure_) {
    asio::async_write(*secure_, asio::buffer(bytes), std::move(done));
  } else {
    asio::async_write(socket_, asio::buffer(bytes), std::move(done));
  }
}

std::size_t Transport::write_now(std::string_view bytes) {
  if (secure_) return 0;
  const auto took =
      ::send(socket_.native_handle(), bytes.data(), bytes.size(), MSG_DONTWAIT | MSG_NOSIGNAL);
  return took > 0 ? static_cast<std::size_t>(took) : 0;
}

bool Transport::hung_up() {
  char byte = 0;
  const auto there = ::recv(socket_.native_handle(), &byte, 1, MSG_PEEK | MSG_DONTWAIT);
  return there == 0 || (there < 0 && errno != EAGAIN && errno != EWOULDBLOCK && errno != EINTR);
}

void Transport::close() {
  closed_ = true;
  ErrorCode ignored;
  resolver_.cancel();
  socket_.close(ignored);
}

result<std::unique_ptr<asio::ssl::context>> make_tls_context(const std::string& ca_file) {
  auto tls = std::make_unique<asio::ssl::context>(asio::ssl::context::tls_client);
  boost::system::error_code error;
  tls->set_options(asio::ssl::context::default_workarounds | asio::ssl::context::no_sslv3 |
                   asio::ssl::context::no_tlsv1 | asio::ssl::context::no_tlsv1_1);
  tls->set_verify_mode(asio::ssl::verify_peer);
  if (ca_file.empty()) {
    tls->set_default_verify_paths(error);
  } else {
    tls->load_verify_file(ca_file, error);
  }
  if (error) {
    return idem::fail(errc::invalid_argument, "cannot use the authorities of '" +
                                                  (ca_file.empty() ? "the system" : ca_file) +
                                                  "': " + error.message());
  }
  return tls;
}

}  // namespace idem::redis
