// What the HTTP layer may be told: which header carries the key, who needs one, what a stored
// response keeps. Plain values; http.hpp uses them, config.hpp fills them in.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "idem/error.hpp"

namespace idem::http {

// Whether a request carries a key.
enum class KeyUse : std::uint8_t {
  required,  // without one: 400
  optional,  // without one: the handler just runs
  off,       // a key is not even looked at
};

// Content-Type, Content-Language, Content-Encoding, Content-Location, Content-Disposition,
// Location, ETag, Last-Modified, Vary, Link.
[[nodiscard]] std::vector<std::string> default_stored_headers();

struct Policy {
  std::string key_header = "Idempotency-Key";  // header names compare without case
  KeyUse key = KeyUse::required;               // a RequestView may say otherwise
  bool strict = false;                         // only the quoted form of a key
  std::string replayed_header = "Idempotent-Replayed";
  std::string ttl_header = "Idempotency-Key-TTL";  // seconds a result is kept; empty: not told
  // What the Link header of a 400 points to.
  std::string documentation =
      "https://datatracker.ietf.org/doc/draft-ietf-httpapi-idempotency-key-header/";
  std::vector<std::string> stored_headers = default_stored_headers();
};

// invalid_argument: a name that is no header name, a documentation text that cannot stand in a Link
// header, or a stored header that must never be replayed (is_replayable_header).
[[nodiscard]] result<void> check_policy(const Policy& policy);

// 1 or more token characters (RFC 9110): what may stand before the colon.
[[nodiscard]] bool is_header_name(std::string_view name) noexcept;
// Visible characters, space, tab and bytes over 0x7F; no other control character.
[[nodiscard]] bool is_header_value(std::string_view value) noexcept;
// False for cookies, authentication, Date, hop-by-hop and framing headers, whatever the policy.
[[nodiscard]] bool is_replayable_header(std::string_view name) noexcept;
// ASCII without case.
[[nodiscard]] bool same_header(std::string_view a, std::string_view b) noexcept;

}  // namespace idem::http
