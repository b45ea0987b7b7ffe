#include "idem/http_policy.hpp"

#include <algorithm>
#include <array>

namespace idem::http {
namespace {

constexpr char lower(char c) noexcept {
  return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
}

constexpr bool is_token_char(char c) noexcept {
  const bool letter = lower(c) >= 'a' && lower(c) <= 'z';
  const bool digit = c >= '0' && c <= '9';
  return letter || digit ||
         (c != '\0' && std::string_view("!#$%&'*+-.^_`|~").find(c) != std::string_view::npos);
}

// Cookies and authentication belong to one exchange; Date, framing and hop-by-hop headers are made
// anew for each (RFC 9110 §7.6.1).
constexpr std::array<std::string_view, 21> kNeverReplayed{"set-cookie",
                                                          "set-cookie2",
                                                          "cookie",
                                                          "authorization",
                                                          "www-authenticate",
                                                          "authentication-info",
                                                          "proxy-authenticate",
                                                          "proxy-authorization",
                                                          "proxy-authentication-info",
                                                          "proxy-connection",
                                                          "date",
                                                          "connection",
                                                          "keep-alive",
                                                          "te",
                                                          "trailer",
                                                          "transfer-encoding",
                                                          "content-length",
                                                          "upgrade",
                                                          "http2-settings",
                                                          "age",
                                                          "host"};

Error bad(std::string_view what, const std::string& text) {
  return idem::fail(errc::invalid_argument, std::string(what) + " '" + text + "'");
}

}  // namespace

std::vector<std::string> default_stored_headers() {
  return {"Content-Type",
          "Content-Language",
          "Content-Encoding",
          "Content-Location",
          "Content-Disposition",
          "Location",
          "ETag",
          "Last-Modified",
          "Vary",
          "Link"};
}

bool is_header_name(std::string_view name) noexcept {
  return !name.empty() && std::all_of(name.begin(), name.end(), is_token_char);
}

bool is_header_value(std::string_view value) noexcept {
  return std::all_of(value.begin(), value.end(), [](char c) {
    const auto byte = static_cast<unsigned char>(c);
    return c == '\t' || (byte >= 0x20 && byte != 0x7F);
  });
}

bool same_header(std::string_view a, std::string_view b) noexcept {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                    [](char x, char y) { return lower(x) == lower(y); });
}

bool is_replayable_header(std::string_view name) noexcept {
  return std::none_of(kNeverReplayed.begin(), kNeverReplayed.end(),
                      [&](std::string_view never) { return same_header(never, name); });
}

result<void> check_policy(const Policy& policy) {
  if (!is_header_name(policy.key_header) || !is_replayable_header(policy.key_header)) {
    return bad("key_header cannot be", policy.key_header);
  }
  if (!is_header_name(policy.replayed_header) || !is_replayable_header(policy.replayed_header)) {
    return bad("replayed_header cannot be", policy.replayed_header);
  }
  if (!policy.ttl_header.empty() &&
      (!is_header_name(policy.ttl_header) || !is_replayable_header(policy.ttl_header))) {
    return bad("ttl_header cannot be", policy.ttl_header);
  }
  const auto breaks_link = [](char c) {
    return c <= 0x20 || c >= 0x7F || c == '<' || c == '>' || c == '"';
  };
  if (std::any_of(policy.documentation.begin(), policy.documentation.end(), breaks_link)) {
    return bad("documentation is not a URL:", policy.documentation);
  }
  for (const std::string& name : policy.stored_headers) {
    if (!is_header_name(name)) return bad("stored_headers holds no header name:", name);
    if (!is_replayable_header(name)) {
      return bad("stored_headers: this header is never replayed:", name);
    }
  }
  return {};
}

}  // namespace idem::http
