#include "tiny_http.hpp"

#include <boost/asio/read.hpp>
#include <boost/asio/write.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/http.hpp>

namespace idem::http {
namespace {

namespace asio = boost::asio;
namespace beast_http = boost::beast::http;
using asio::ip::tcp;
using boost::system::error_code;

const tcp::endpoint kLoopback(asio::ip::address_v4::loopback(), 0);

}  // namespace

TinyServer::TinyServer(Handler handler)
    : handler_(std::move(handler)), acceptor_(context_, kLoopback) {
  port_ = acceptor_.local_endpoint().port();
  acceptor_thread_ = std::thread([this] { accept(); });
}

TinyServer::~TinyServer() {
  {
    const std::lock_guard guard(mutex_);
    stopping_ = true;
    error_code ignored;
    for (const auto& socket : sockets_) socket->shutdown(tcp::socket::shutdown_both, ignored);
  }
  // Wakes the blocking accept.
  error_code ignored;
  asio::io_context context;
  tcp::socket(context).connect({asio::ip::address_v4::loopback(), port_}, ignored);
  acceptor_thread_.join();
  for (std::thread& session : sessions_) session.join();
}

void TinyServer::accept() {
  for (;;) {
    auto socket = std::make_shared<tcp::socket>(context_);
    error_code ec;
    acceptor_.accept(*socket, ec);
    const std::lock_guard guard(mutex_);
    if (stopping_ || ec) return;
    ++connections_;
    sockets_.push_back(socket);
    sessions_.emplace_back([this, socket] { serve(*socket); });
  }
}

void TinyServer::serve(tcp::socket& socket) {
  boost::beast::flat_buffer buffer;
  for (;;) {
    BeastRequest request;
    error_code ec;
    beast_http::read(socket, buffer, request, ec);
    if (ec) break;
    auto response = handler_(request);
    if (!response) break;
    response->keep_alive(request.keep_alive());
    if (!response->chunked()) response->prepare_payload();
    beast_http::write(socket, *response, ec);
    if (ec || !response->keep_alive()) break;
  }
  error_code ignored;
  socket.shutdown(tcp::socket::shutdown_both, ignored);
}

BeastRequest post(std::string_view target, std::string_view key, std::string_view body) {
  BeastRequest request{beast_http::verb::post, target, 11};
  request.set(beast_http::field::host, "test");
  if (!key.empty()) request.set("Idempotency-Key", key);
  request.body() = body;
  request.prepare_payload();
  return request;
}

BeastRequest get(std::string_view target) {
  BeastRequest request{beast_http::verb::get, target, 11};
  request.set(beast_http::field::host, "test");
  return request;
}

BeastResponse reply(unsigned status, std::string_view body) {
  BeastResponse response{static_cast<beast_http::status>(status), 11};
  response.set(beast_http::field::content_type, "text/plain");
  response.body() = body;
  return response;
}

TinyClient::TinyClient(std::uint16_t port) : socket_(context_) {
  socket_.connect({asio::ip::address_v4::loopback(), port});
}

std::optional<BeastResponse> TinyClient::ask(const BeastRequest& request) {
  error_code ec;
  beast_http::write(socket_, request, ec);
  boost::beast::flat_buffer buffer;
  beast_http::response_parser<beast_http::string_body> parser;
  parser.skip(request.method() == beast_http::verb::head);
  if (!ec) beast_http::read(socket_, buffer, parser, ec);
  if (ec) return std::nullopt;
  return parser.release();
}

void TinyClient::send_bytes(std::string_view bytes) {
  error_code ignored;  // the other side may have closed already
  asio::write(socket_, asio::buffer(bytes.data(), bytes.size()), ignored);
}

std::string TinyClient::read_all() {
  std::string text;
  error_code ec;
  asio::read(socket_, asio::dynamic_buffer(text), ec);
  return text;
}

BeastResponse fetch(std::uint16_t port, const BeastRequest& request) {
  auto response = TinyClient(port).ask(request);
  return response ? std::move(*response) : reply(500, "(closed without a response)");
}

std::string fetch_bytes(std::uint16_t port, std::string_view bytes) {
  TinyClient client(port);
  client.send_bytes(bytes);
  return client.read_all();
}

}  // namespace idem::http
