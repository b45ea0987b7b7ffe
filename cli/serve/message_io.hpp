// HTTP messages on a connection, in as few steps as they need: what was received already is parsed
// without asking the event loop, and a message of usual size leaves as one piece of memory. (Each
// composed operation of Beast costs some microseconds, each request would pass eight of them.)
#pragma once

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/asio/write.hpp>
#include <boost/beast/core/buffers_range.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/core/read_size.hpp>
#include <boost/beast/core/tcp_stream.hpp>
#include <boost/beast/http.hpp>
#include <string>

namespace idem::serve {

// Larger bodies are not copied to stand behind their head.
inline constexpr std::size_t kBytesInOnePiece = std::size_t{64} << 10;

struct Moved {
  boost::system::error_code ec;
  std::size_t bytes = 0;
};

inline constexpr auto kTuple = boost::asio::as_tuple(boost::asio::use_awaitable);

enum class ReadUntil : std::uint8_t { head, end };

// Errors as of Beast's async_read: end_of_stream if the other side closed before the first byte,
// partial_message if it did so within the message. What stands behind the message stays in
// `buffer`.
template <bool is_request>
boost::asio::awaitable<Moved> read_message(boost::beast::tcp_stream& stream,
                                           boost::beast::flat_buffer& buffer,
                                           boost::beast::http::basic_parser<is_request>& parser,
                                           ReadUntil until) {
  namespace http = boost::beast::http;
  constexpr std::size_t kReadMax = 65536;
  const auto done = [&] {
    return until == ReadUntil::head ? parser.is_header_done() : parser.is_done();
  };
  Moved moved;
  parser.eager(until == ReadUntil::end);
  while (!done()) {
    if (buffer.size() > 0) {
      const std::size_t used = parser.put(buffer.data(), moved.ec);
      buffer.consume(used);
      moved.bytes += used;
      if (moved.ec && moved.ec != http::error::need_more) co_return moved;
      if (!moved.ec && used > 0) continue;
      moved.ec = {};
    }
    const auto [ec, count] = co_await stream.async_read_some(
        buffer.prepare(boost::beast::read_size(buffer, kReadMax)), kTuple);
    buffer.commit(count);
    if (ec == boost::asio::error::eof) {
      moved.ec = http::error::end_of_stream;
      if (parser.got_some()) {
        moved.ec = {};
        parser.put_eof(moved.ec);
      }
      co_return moved;
    }
    if (ec) {
      moved.ec = ec;
      co_return moved;
    }
  }
  co_return moved;
}

template <bool is_request>
boost::asio::awaitable<Moved> write_message(
    boost::beast::tcp_stream& stream,
    const boost::beast::http::message<is_request, boost::beast::http::string_body>& message) {
  namespace http = boost::beast::http;
  http::serializer<is_request, http::string_body> serializer(message);
  if (message.body().size() > kBytesInOnePiece) {
    const auto [ec, count] = co_await http::async_write(stream, serializer, kTuple);
    co_return Moved{ec, count};
  }
  std::string text;
  Moved moved;
  while (!moved.ec && !serializer.is_done()) {
    serializer.next(moved.ec, [&](boost::system::error_code&, const auto& buffers) {
      const std::size_t before = text.size();
      for (const boost::asio::const_buffer piece : boost::beast::buffers_range_ref(buffers))
        text.append(static_cast<const char*>(piece.data()), piece.size());
      serializer.consume(text.size() - before);
    });
  }
  if (moved.ec) co_return moved;
  const auto [ec, count] =
      co_await boost::asio::async_write(stream, boost::asio::buffer(text), kTuple);
  co_return Moved{ec, count};
}

}  // namespace idem::serve
