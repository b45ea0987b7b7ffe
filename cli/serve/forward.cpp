#include "forward.hpp"

#include <algorithm>
#include <array>
#include <boost/beast/http/rfc7230.hpp>

namespace idem::serve {
namespace {

namespace beast_http = boost::beast::http;
using beast_http::field;

constexpr std::array kHopByHop{field::connection,
                               field::keep_alive,
                               field::proxy_connection,
                               field::te,
                               field::trailer,
                               field::transfer_encoding,
                               field::upgrade,
                               field::proxy_authenticate,
                               field::proxy_authorization};

// Erases hop-by-hop headers and those that the Connection header names.
template <class Fields>
void erase_hop_by_hop(Fields& fields) {
  std::vector<std::string> named;
  for (const auto& one : fields) {
    if (one.name() != field::connection) continue;
    for (const auto& token : beast_http::token_list(one.value())) named.emplace_back(token);
  }
  for (const std::string& name : named) {
    // Neither framing nor what the request was guarded by is the client's to take away.
    if (!http::same_header(name, "Content-Length") && !http::same_header(name, "Host") &&
        !http::same_header(name, "Idempotency-Key")) {
      fields.erase(name);
    }
  }
  for (const field name : kHopByHop) fields.erase(name);
}

bool is_chunked(std::string_view coding) { return http::same_header(coding, "chunked"); }

}  // namespace

std::vector<std::string> transfer_codings(const beast_http::fields& fields) {
  std::vector<std::string> codings;
  for (auto [line, end] = fields.equal_range(field::transfer_encoding); line != end; ++line) {
    const std::size_t before = codings.size();
    for (const auto& [name, parameters] : beast_http::ext_list(line->value())) {
      // RFC 9112 §7.1: chunked has no parameters; with some it is a coding that nobody knows.
      const bool plain = parameters.begin() == parameters.end();
      codings.emplace_back(plain ? std::string(name) : std::string());
    }
    if (codings.size() == before) codings.emplace_back();
  }
  return codings;
}

std::optional<Objection> framing_objection_to(const http::BeastRequest& request) {
  const auto codings = transfer_codings(request);
  if (codings.empty()) return std::nullopt;
  if (request.version() < 11 || !is_chunked(codings.back())) {
    return Objection{400, "malformed", "The end of the request's body cannot be told"};
  }
  if (codings.size() == 1) return std::nullopt;
  return Objection{501, "not_implemented", "The transfer coding is not known here"};
}

std::optional<Objection> objection_to(const http::BeastRequest& request) {
  if (request.method() == beast_http::verb::connect) {
    return Objection{501, "not_implemented", "Tunnels are not offered here"};
  }
  if (request.count(field::host) > 1) {
    return Objection{400, "malformed", "Several Host headers"};
  }
  if (request.version() >= 11 && request.count(field::host) == 0) {  // RFC 9112, 3.2
    return Objection{400, "malformed", "No Host header"};
  }
  if (path_of(http::detail::view(request.target())).empty()) {
    return Objection{400, "malformed", "The request target is not a path"};
  }
  return std::nullopt;
}

std::string_view path_of(std::string_view target) {
  if (target.starts_with("http://")) {
    const std::size_t slash = target.find('/', 7);
    return slash == std::string_view::npos ? std::string_view("/") : target.substr(slash);
  }
  if (target.starts_with('/') || target == "*") return target;
  return {};
}

http::BeastRequest to_upstream(http::BeastRequest& request, const Forwarding& forwarding) {
  http::BeastRequest out;
  out.version(11);
  out.method_string(request.method_string());  // also one that Beast does not know
  out.target(path_of(http::detail::view(request.target())));
  for (const auto& one : request) out.insert(one.name(), one.name_string(), one.value());
  erase_hop_by_hop(out);
  out.erase(field::expect);
  out.erase(kFenceHeader);  // never a client's word
  if (forwarding.fence != 0) out.set(kFenceHeader, std::to_string(forwarding.fence));
  if (out.count(field::host) == 0) out.set(field::host, forwarding.authority);
  std::string chain;
  for (auto [first, last] = out.equal_range("X-Forwarded-For"); first != last; ++first) {
    chain.append(http::detail::view(first->value())).append(", ");
  }
  out.set("X-Forwarded-For", chain.append(forwarding.client));
  const bool had_body = request.has_content_length() || request.chunked();
  out.body() = std::move(request.body());
  out.erase(field::content_length);
  if (had_body) out.content_length(out.body().size());
  return out;
}

void to_client(http::BeastResponse& response, unsigned http_version, bool keep_alive,
               bool answers_head) {
  const std::string length(http::detail::view(response[field::content_length]));
  erase_hop_by_hop(response);
  response.version(http_version);
  response.keep_alive(keep_alive);
  const unsigned status = response.result_int();
  if (status == 204 || status == 304 || answers_head) {
    response.body().clear();
    response.erase(field::content_length);
    if (answers_head && !length.empty()) response.set(field::content_length, length);
    return;
  }
  response.content_length(response.body().size());
}

}  // namespace idem::serve
