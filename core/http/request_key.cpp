// The key in its header line, and the fingerprint of a request.
#include <algorithm>

#include "idem/http.hpp"

namespace idem::http {
namespace {

constexpr bool is_visible(char c) { return c > 0x20 && c < 0x7F; }

std::string_view without_blanks_around(std::string_view text) {
  const auto is_blank = [](char c) { return c == ' ' || c == '\t'; };
  while (!text.empty() && is_blank(text.front())) text.remove_prefix(1);
  while (!text.empty() && is_blank(text.back())) text.remove_suffix(1);
  return text;
}

// RFC 8941 §4.2.5. nullopt: not a string, or something stands after it.
std::optional<std::string> unquoted(std::string_view text) {
  std::string out;
  for (std::size_t i = 1; i < text.size(); ++i) {
    char c = text[i];
    if (c == '"') {
      if (i + 1 != text.size()) return std::nullopt;
      return out;
    }
    if (c == '\\') {
      if (++i == text.size() || (text[i] != '"' && text[i] != '\\')) return std::nullopt;
      c = text[i];
    } else if (!is_visible(c) && c != ' ') {
      return std::nullopt;
    }
    out += c;
  }
  return std::nullopt;
}

void add_part(std::string& text, std::string_view part) {
  text += std::to_string(part.size());
  text += ':';
  text += part;
}

}  // namespace

std::variant<std::string, KeyProblem> parse_key(std::string_view field, bool strict) {
  const std::string_view text = without_blanks_around(field);
  std::string key;
  if (text.empty()) return KeyProblem{Reason::key_malformed, "The key is empty."};
  if (text.front() == '"') {
    auto quoted = unquoted(text);
    if (!quoted) {
      return KeyProblem{Reason::key_malformed,
                        "The key is not one quoted string of visible characters."};
    }
    key = std::move(*quoted);
  } else if (strict) {
    return KeyProblem{Reason::key_malformed, "The key must be a quoted string."};
  } else {
    if (!std::all_of(text.begin(), text.end(), is_visible)) {
      return KeyProblem{Reason::key_malformed,
                        "An unquoted key consists of visible ASCII characters."};
    }
    key = text;
  }
  if (key.size() > kKeyBytesMax) {
    return KeyProblem{Reason::key_too_long, "The key is longer than 128 bytes."};
  }
  if (!check_key({{}, {}, key})) {
    return KeyProblem{Reason::key_malformed, "The key is blank."};
  }
  return key;
}

Fingerprint fingerprint_of(std::string_view method, std::string_view target,
                           std::string_view body) {
  // The body enters as its own SHA-256, so that it need not be copied.
  const Fingerprint of_body = Fingerprint::of_bytes(body);
  std::string text = "idem-http-request-1:";
  text.reserve(text.size() + method.size() + target.size() + 96);
  add_part(text, method);
  add_part(text, target);
  add_part(text, of_body.hex());
  return Fingerprint::of_bytes(text);
}

}  // namespace idem::http
