// Boost.Beast: wraps a function from request to response. Headers only; links idem::http.
//
//   namespace beast_http = boost::beast::http;
//   beast_http::response<beast_http::string_body> pay(const beast_http::request<...>& request);
//
//   response = idem::http::handle_beast(guard, request, {.tenant = user, .biz_type = "pay"}, pay);
//
// Blocks for the calls to the store; call it from a thread that may wait.
#pragma once

#include <boost/beast/http/message.hpp>
#include <boost/beast/http/string_body.hpp>
#include <utility>

#include "idem/http_scope.hpp"

namespace idem::http {

using BeastRequest = boost::beast::http::request<boost::beast::http::string_body>;
using BeastResponse = boost::beast::http::response<boost::beast::http::string_body>;

namespace detail {

template <class Fields>
std::vector<HeaderView> header_views(const Fields& fields) {
  std::vector<HeaderView> views;
  for (const auto& field : fields) {
    const auto name = field.name_string();
    const auto value = field.value();
    views.push_back({{name.data(), name.size()}, {value.data(), value.size()}});
  }
  return views;
}

inline std::string_view view(boost::beast::string_view text) { return {text.data(), text.size()}; }

}  // namespace detail

// A guard's response as Beast's.
inline BeastResponse to_beast(Response response, unsigned http_version, bool keep_alive) {
  BeastResponse out{static_cast<boost::beast::http::status>(response.status), http_version};
  for (const Header& header : response.headers) out.insert(header.name, header.value);
  if (response.status != 204 && response.status != 304) out.body() = std::move(response.body);
  out.keep_alive(keep_alive);
  out.prepare_payload();
  // RFC 9110 §8.6: of a 304 it would be the length of a body that is not sent.
  if (response.status == 204 || response.status == 304)
    out.erase(boost::beast::http::field::content_length);
  return out;
}

// Runs `handler(request)` at most once per key, or answers instead of it. An exception of the
// handler fails the claim (it may be tried again) and goes on to the caller.
template <class Handler>
BeastResponse handle_beast(Guard& guard, const BeastRequest& request, const Scope& scope,
                           Handler&& handler) {
  const auto headers = detail::header_views(request);
  RequestView asked;
  asked.method = detail::view(request.method_string());
  asked.target = detail::view(request.target());
  asked.headers = headers;
  asked.body = request.body();
  BeastResponse response;
  auto answer = run_guarded(guard, asked, scope, [&] {
    response = handler(request);
    return Handled{response.result_int(), detail::header_views(response), response.body()};
  });
  if (answer.instead)
    return to_beast(std::move(*answer.instead), request.version(), request.keep_alive());
  for (const Header& header : answer.add) response.set(header.name, header.value);
  return response;
}

}  // namespace idem::http
