#include "upstream.hpp"

#include <boost/asio/ip/tcp.hpp>

#include "forward.hpp"
#include "message_io.hpp"

namespace idem::serve {
namespace {

namespace asio = boost::asio;
namespace beast = boost::beast;
using asio::ip::tcp;
using boost::system::error_code;

// Servers commonly close after 5 s of silence; a connection that is nearly that old is not used,
// because a request on it may be cut in a way that leaves its end unknown.
constexpr Micros kIdleMax = std::chrono::seconds(4);
constexpr std::size_t kIdleConnections = 64;
constexpr std::uint32_t kHeaderBytesMax = 64 * 1024;

bool may_be_repeated(const http::BeastRequest& request) {
  const auto method = request.method();
  return method == beast::http::verb::get || method == beast::http::verb::head ||
         method == beast::http::verb::options;
}

// Whether the other side has neither closed nor said anything.
bool is_silent(tcp::socket& socket) {
  error_code ec;
  socket.non_blocking(true, ec);
  if (ec) return false;
  char byte = 0;
  socket.receive(asio::buffer(&byte, 1), tcp::socket::message_peek, ec);
  return ec == asio::error::would_block;
}

using Parser = beast::http::response_parser<beast::http::string_body>;

}  // namespace

Upstream::Upstream(asio::io_context& context, UpstreamOptions options, Clock& clock,
                   Metrics& metrics)
    : context_(context), options_(std::move(options)), clock_(clock), metrics_(metrics) {}

asio::awaitable<UpstreamAnswer> Upstream::send(const http::BeastRequest& request) {
  UpstreamAnswer answer;
  bool answer_began = false;
  if (auto kept = take_idle()) {
    metrics_.count_reused();
    answer = co_await send_on(*kept, request, answer_began);
    const bool again =
        answer.end == UpstreamEnd::not_sent ||
        (answer.end == UpstreamEnd::cut && !answer_began && may_be_repeated(request));
    if (!again) {
      if (answer.end == UpstreamEnd::answered && answer.response.keep_alive())
        keep(std::move(*kept));
      metrics_.count(answer.end);
      co_return answer;
    }
  }
  auto fresh = co_await connect();
  if (fresh) {
    answer = co_await send_on(*fresh, request, answer_began);
    if (answer.end == UpstreamEnd::answered && answer.response.keep_alive())
      keep(std::move(*fresh));
  } else {
    answer.end = UpstreamEnd::not_sent;
  }
  metrics_.count(answer.end);
  co_return answer;
}

asio::awaitable<UpstreamAnswer> Upstream::send_on(Stream& stream, const http::BeastRequest& request,
                                                  bool& answer_began) {
  UpstreamAnswer answer;
  const auto ended = [&](error_code ec) {
    answer.end = ec == beast::error::timeout ? UpstreamEnd::timed_out : UpstreamEnd::cut;
  };
  stream.expires_after(options_.answer_time);
  const Moved written = co_await write_message(stream, request);
  if (written.ec) {
    ended(written.ec);
    // Not one byte was taken by our own kernel: nobody can have acted.
    if (written.bytes == 0) answer.end = UpstreamEnd::not_sent;
    co_return answer;
  }
  beast::flat_buffer buffer;
  for (;;) {
    Parser parser;
    parser.header_limit(kHeaderBytesMax);
    parser.body_limit(boost::none);  // set below, so that the head is read in any case
    parser.skip(request.method() == beast::http::verb::head);
    const Moved head = co_await read_message(stream, buffer, parser, ReadUntil::head);
    answer_began = answer_began || head.bytes > 0 || buffer.size() > 0;
    const bool interim = !head.ec && parser.get().result_int() < 200;
    if (interim && parser.get().result_int() != 101) continue;  // RFC 9110 §15.2
    if (head.ec || interim) {
      ended(head.ec);
      co_return answer;
    }
    // Not asked for, and what it would decode to is not known.
    if (const auto codings = transfer_codings(parser.get());
        codings.size() > 1 || (codings.size() == 1 && !parser.chunked())) {
      ended(beast::http::error::bad_transfer_encoding);
      co_return answer;
    }
    if (const auto length = parser.content_length(); length && *length > options_.body_bytes_max) {
      answer.end = UpstreamEnd::too_large;
      answer.response = std::move(parser.get());
      co_return answer;
    }
    parser.body_limit(options_.body_bytes_max);
    const Moved body = co_await read_message(stream, buffer, parser, ReadUntil::end);
    if (body.ec && body.ec != beast::http::error::body_limit) {
      ended(body.ec);
      co_return answer;
    }
    answer.end = body.ec ? UpstreamEnd::too_large : UpstreamEnd::answered;
    answer.response = std::move(parser.get());
    stream.expires_never();
    co_return answer;
  }
}

asio::awaitable<std::optional<Upstream::Stream>> Upstream::connect() {
  Stream stream(context_);
  error_code not_numeric;
  const auto address = asio::ip::make_address(options_.host, not_numeric);
  if (!not_numeric) {
    stream.expires_after(options_.connect_time);
    const tcp::endpoint endpoint(address, static_cast<std::uint16_t>(std::stoi(options_.port)));
    const auto [ec] = co_await stream.async_connect(endpoint, kTuple);
    if (ec) co_return std::nullopt;
  } else {
    tcp::resolver resolver(context_);
    const auto [resolve_error, endpoints] =
        co_await resolver.async_resolve(options_.host, options_.port, kTuple);
    if (resolve_error) co_return std::nullopt;
    stream.expires_after(options_.connect_time);
    const auto [ec, endpoint] = co_await stream.async_connect(endpoints, kTuple);
    (void)endpoint;
    if (ec) co_return std::nullopt;
  }
  error_code ignored;
  stream.socket().set_option(tcp::no_delay(true), ignored);
  co_return std::optional<Stream>(std::move(stream));
}

std::optional<Upstream::Stream> Upstream::take_idle() {
  while (!idle_.empty()) {
    Idle last = std::move(idle_.back());
    idle_.pop_back();
    if (clock_.now() - last.since >= kIdleMax) {
      idle_.clear();  // the others are older still
      break;
    }
    if (is_silent(last.stream.socket())) return std::move(last.stream);
  }
  return std::nullopt;
}

void Upstream::keep(Stream stream) {
  if (idle_.size() == kIdleConnections) idle_.pop_front();
  idle_.push_back({std::move(stream), clock_.now()});
}

}  // namespace idem::serve
