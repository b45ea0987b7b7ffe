// One client connection: reads requests, answers them, in order.
#pragma once

#include <boost/asio/awaitable.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/core/tcp_stream.hpp>
#include <boost/beast/http/parser.hpp>

#include "worker.hpp"

namespace idem::serve {

class Session {
 public:
  Session(Worker& worker, boost::asio::ip::tcp::socket socket);
  ~Session();
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;

  // Until the connection ends.
  boost::asio::awaitable<void> run();

  // Ends a connection that waits for its next request.
  void close_if_idle();

 private:
  using Parser = boost::beast::http::request_parser<boost::beast::http::string_body>;

  boost::asio::awaitable<bool> await_request();
  // nullopt: read. Otherwise what to say before the connection is closed (status 0: nothing).
  boost::asio::awaitable<std::optional<http::Response>> read(Parser& parser);
  boost::asio::awaitable<http::BeastResponse> answer(http::BeastRequest& request);
  boost::asio::awaitable<http::BeastResponse> answer_keyed(http::BeastRequest& request,
                                                           const Request& keyed);
  boost::asio::awaitable<http::Decision> claim(const Request& keyed);
  boost::asio::awaitable<http::BeastResponse> report(const http::BeastRequest& request,
                                                     http::Exchange exchange,
                                                     UpstreamAnswer answer);
  boost::asio::awaitable<http::BeastResponse> finish(const http::BeastRequest& request,
                                                     http::Exchange exchange,
                                                     UpstreamAnswer answer);
  [[nodiscard]] std::optional<http::BeastResponse> own_page(const http::BeastRequest& request);
  [[nodiscard]] http::BeastResponse made(http::Response response,
                                         const http::BeastRequest& request) const;
  [[nodiscard]] http::BeastRequest outgoing(http::BeastRequest& request, std::uint64_t fence) const;
  [[nodiscard]] http::BeastResponse from_upstream(UpstreamAnswer answer,
                                                  const http::BeastRequest& request);

  Worker& worker_;
  Shared& shared_;
  boost::beast::tcp_stream stream_;
  boost::beast::flat_buffer buffer_;
  std::string client_;
  bool idle_ = false;
};

}  // namespace idem::serve
