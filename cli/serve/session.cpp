// Reading requests off a connection and writing replies.
#include "session.hpp"

#include <boost/asio/write.hpp>

#include "forward.hpp"
#include "message_io.hpp"

namespace idem::serve {
namespace {

namespace asio = boost::asio;
namespace beast = boost::beast;
namespace beast_http = beast::http;
using boost::system::error_code;

constexpr std::string_view kContinue = "HTTP/1.1 100 Continue\r\n\r\n";
// How long a client may take to read a reply.
constexpr Micros kWriteTime = std::chrono::seconds(30);

http::Response malformed(error_code ec) {
  if (ec == beast_http::error::header_limit) {
    return http::problem(431, "head_too_large", "The request's head is too large", "");
  }
  if (ec == beast_http::error::body_limit) {
    return http::problem(413, "body_too_large", "The request's body is too large", "");
  }
  return http::problem(400, "malformed", "The request is not HTTP",
                       "The parser says: " + ec.message() + ".");
}

// The other side is gone, or was too slow (Beast has closed the socket then): nobody reads an
// answer.
bool is_over(error_code ec) {
  return ec == beast::error::timeout || ec == beast_http::error::end_of_stream ||
         ec == asio::error::eof || ec == asio::error::connection_reset ||
         ec == asio::error::operation_aborted || ec == asio::error::broken_pipe ||
         ec == beast_http::error::partial_message;
}

}  // namespace

Session::Session(Worker& worker, asio::ip::tcp::socket socket)
    : worker_(worker), shared_(worker.shared), stream_(std::move(socket)) {
  error_code ec;
  const auto peer = stream_.socket().remote_endpoint(ec);
  if (!ec) client_ = peer.address().to_string();
  stream_.socket().set_option(asio::ip::tcp::no_delay(true), ec);
  worker_.sessions.insert(this);
  shared_.metrics.connection_opened();
}

Session::~Session() {
  worker_.sessions.erase(this);
  shared_.metrics.connection_closed();
}

void Session::close_if_idle() {
  if (idle_) stream_.cancel();
}

asio::awaitable<bool> Session::await_request() {
  if (buffer_.size() > 0) co_return true;  // pipelined
  idle_ = true;
  stream_.expires_after(shared_.options.idle_time.micros());
  const auto [ec, bytes] = co_await stream_.async_read_some(buffer_.prepare(4096), kTuple);
  idle_ = false;
  buffer_.commit(bytes);
  co_return !ec;
}

asio::awaitable<std::optional<http::Response>> Session::read(Parser& parser) {
  const ServeOptions& options = shared_.options;
  parser.header_limit(static_cast<std::uint32_t>(options.header_bytes_max));
  parser.body_limit(options.request_bytes_max);
  const auto silence = [] { return std::optional(http::Response{0, {}, {}}); };

  // One deadline for the whole head, however many bytes dribble in.
  stream_.expires_after(options.header_time.micros());
  const Moved head = co_await read_message(stream_, buffer_, parser, ReadUntil::head);
  if (head.ec) {
    if (is_over(head.ec)) co_return silence();
    co_return malformed(head.ec);
  }
  if (const auto objection = framing_objection_to(parser.get())) {
    co_return http::problem(objection->status, objection->code, objection->title, "");
  }
  if (const auto length = parser.content_length(); length && *length > options.request_bytes_max) {
    co_return malformed(beast_http::error::body_limit);
  }
  stream_.expires_after(options.body_time.micros());
  if (beast::iequals(parser.get()[beast_http::field::expect], "100-continue")) {
    const auto [ec, bytes] = co_await asio::async_write(
        stream_, asio::buffer(kContinue.data(), kContinue.size()), kTuple);
    (void)bytes;
    if (ec) co_return silence();
  }
  const Moved body = co_await read_message(stream_, buffer_, parser, ReadUntil::end);
  if (body.ec) {
    if (is_over(body.ec)) co_return silence();
    co_return malformed(body.ec);
  }
  co_return std::nullopt;
}

asio::awaitable<void> Session::run() {
  for (;;) {
    if (worker_.draining) break;
    if (!co_await await_request()) break;
    Parser parser;
    auto refusal = co_await read(parser);
    http::BeastResponse response;
    if (refusal) {
      if (refusal->status == 0) break;
      shared_.metrics.count(Told::refused);
      response = http::to_beast(std::move(*refusal), 11, false);
    } else {
      http::BeastRequest request = parser.release();
      stream_.expires_never();  // the upstream has a time limit of its own
      response = co_await answer(request);
      if (worker_.draining) response.keep_alive(false);
    }
    stream_.expires_after(kWriteTime);
    const Moved written = co_await write_message(stream_, response);
    if (written.ec || refusal || !response.keep_alive()) break;
  }
  error_code ignored;
  stream_.socket().shutdown(asio::ip::tcp::socket::shutdown_send, ignored);
}

}  // namespace idem::serve
