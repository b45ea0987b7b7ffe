// cpp-httplib: wraps a handler. Headers only; links idem::http and whatever brings <httplib.h>.
//
//   server.Post("/pay", idem::http::guarded(guard, {.biz_type = "pay"}, pay));
//
// The wrapped handler blocks for the calls to the store, in the server's thread for this request.
// cpp-httplib before 0.12 percent-decodes header values: a key with a '%' arrives decoded.
#pragma once

#include <httplib.h>

#include <functional>
#include <utility>

#include "idem/http_scope.hpp"

namespace idem::http {

// Who asks, from a request that the application has authenticated.
using HttplibScope = std::function<Scope(const ::httplib::Request&)>;

// The guard must outlive the server.
inline ::httplib::Server::Handler guarded(Guard& guard, HttplibScope scope,
                                          ::httplib::Server::Handler handler) {
  return [&guard, scope = std::move(scope), handler = std::move(handler)](
             const ::httplib::Request& request, ::httplib::Response& response) {
    std::vector<HeaderView> headers;
    for (const auto& [name, value] : request.headers) headers.push_back({name, value});
    RequestView asked;
    asked.method = request.method;
    asked.target = request.target;
    asked.headers = headers;
    asked.body = request.body;
    Finished answer = run_guarded(guard, asked, scope(request), [&] {
      handler(request, response);
      if (response.status == -1) response.status = 200;  // the library's "not set"
      Handled handled{static_cast<unsigned>(response.status), {}, response.body};
      for (const auto& [name, value] : response.headers) handled.headers.push_back({name, value});
      return handled;
    });
    if (answer.instead) {
      response = ::httplib::Response();
      response.status = static_cast<int>(answer.instead->status);
      response.body = std::move(answer.instead->body);
      answer.add = std::move(answer.instead->headers);
    }
    for (const Header& header : answer.add) response.set_header(header.name, header.value);
  };
}

inline ::httplib::Server::Handler guarded(Guard& guard, Scope scope,
                                          ::httplib::Server::Handler handler) {
  return guarded(
      guard, [scope = std::move(scope)](const ::httplib::Request&) { return scope; },
      std::move(handler));
}

}  // namespace idem::http
