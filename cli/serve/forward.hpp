// Pure: a client's request as the upstream gets it, the upstream's response as the client gets it.
// Neither carries hop-by-hop headers (RFC 9110 §7.6.1) over.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "idem/http_beast.hpp"

namespace idem::serve {

// The header that tells the upstream its fencing token: it may refuse a lower one than it has seen.
inline constexpr std::string_view kFenceHeader = "Idempotency-Fence";

// What is wrong with a request that cannot be forwarded: a status and a problem code, or nothing.
struct Objection {
  unsigned status = 0;
  std::string_view code;
  std::string_view title;
};
[[nodiscard]] std::optional<Objection> objection_to(const http::BeastRequest& request);

// The same of its framing, to be asked before the body is read. Only `chunked` is decoded here (RFC
// 9112 §6.1): behind any other coding the next request would begin where nobody can tell.
[[nodiscard]] std::optional<Objection> framing_objection_to(const http::BeastRequest& request);

// The transfer codings of a message, in order; a line that is no list counts as one unknown coding.
[[nodiscard]] std::vector<std::string> transfer_codings(const boost::beast::http::fields& fields);

// Path and query of a target in origin or absolute form; empty if it is neither.
[[nodiscard]] std::string_view path_of(std::string_view target);

struct Forwarding {
  std::string_view client;     // its address
  std::string_view authority;  // of the upstream, where the client named no host
  std::uint64_t fence = 0;     // 0: none
};
// Takes the body out of `request`.
[[nodiscard]] http::BeastRequest to_upstream(http::BeastRequest& request,
                                             const Forwarding& forwarding);

// Makes the upstream's response one of ours, in place.
void to_client(http::BeastResponse& response, unsigned http_version, bool keep_alive,
               bool answers_head);

}  // namespace idem::serve
