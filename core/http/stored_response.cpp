// The response as it is stored: written, and read back with suspicion.
#include <algorithm>
#include <array>
#include <charconv>

#include "idem/http.hpp"

namespace idem::http {
namespace {

constexpr std::string_view kMagic = "idem-http/";
constexpr std::string_view kVersion = "1";
constexpr std::string_view kKept = "kept";
constexpr std::string_view kOmitted = "omitted";
// A first result has a final status.
constexpr unsigned kStatusMin = 200;
constexpr unsigned kStatusMax = 599;

// What every server and client takes in one header.
constexpr std::size_t kHeaderBytesMax = 8192;

bool is_well_formed(std::string_view name, std::string_view value) {
  return is_header_name(name) && is_header_value(value) && is_replayable_header(name) &&
         name.size() + value.size() <= kHeaderBytesMax;
}

bool may_be_stored(const HeaderView& header, std::span<const std::string> allowed) {
  return is_well_formed(header.name, header.value) &&
         std::any_of(allowed.begin(), allowed.end(),
                     [&](const std::string& name) { return same_header(name, header.name); });
}

// RFC 9110 §7.6.1: what Connection names is meant for this hop only.
bool is_named_by_connection(std::string_view name, std::span<const HeaderView> headers) {
  return std::any_of(headers.begin(), headers.end(), [&](const HeaderView& one) {
    if (!same_header(one.name, "Connection")) return false;
    for (std::string_view rest = one.value; !rest.empty();) {
      std::string_view token = rest.substr(0, rest.find(','));
      rest.remove_prefix(std::min(rest.size(), token.size() + 1));
      token.remove_prefix(std::min(token.size(), token.find_first_not_of(" \t")));
      token = token.substr(0, token.find_last_not_of(" \t") + 1);
      if (same_header(token, name)) return true;
    }
    return false;
  });
}

Error corrupt(const std::string& why) {
  return idem::fail(errc::corrupt, "the stored response cannot be replayed: " + why);
}

// Takes the text before the next line feed; nullopt if there is none.
std::optional<std::string_view> take_line(std::string_view& rest) {
  const std::size_t end = rest.find('\n');
  if (end == std::string_view::npos) return std::nullopt;
  const std::string_view line = rest.substr(0, end);
  rest.remove_prefix(end + 1);
  return line;
}

template <class Number>
bool parse_whole(std::string_view text, Number& into) {
  const char* const end = text.data() + text.size();
  const auto parsed = std::from_chars(text.data(), end, into);
  return !text.empty() && parsed.ec == std::errc() && parsed.ptr == end;
}

result<StoredResponse> parse_first_line(std::string_view line) {
  std::array<std::string_view, 4> words;
  for (std::string_view& word : words) {
    word = line.substr(0, line.find(' '));
    line.remove_prefix(std::min(line.size(), word.size() + 1));
  }
  StoredResponse stored;
  if (!line.empty() || !words[0].starts_with(kMagic)) return corrupt("its first line is damaged");
  if (words[0].substr(kMagic.size()) != kVersion) return corrupt("it is of an unknown version");
  if (!parse_whole(words[1], stored.response.status) || stored.response.status < kStatusMin ||
      stored.response.status > kStatusMax || !parse_whole(words[2], stored.body_bytes) ||
      (words[3] != kKept && words[3] != kOmitted)) {
    return corrupt("its first line is damaged");
  }
  stored.body_kept = words[3] == kKept;
  return stored;
}

}  // namespace

std::string encode_response(const ResponseView& response,
                            std::span<const std::string> allowed_headers, std::uint64_t bytes_max) {
  std::string headers;
  for (const HeaderView& header : response.headers) {
    if (!may_be_stored(header, allowed_headers)) continue;
    if (is_named_by_connection(header.name, response.headers)) continue;
    headers.append(header.name).append(": ").append(header.value) += '\n';
  }
  const auto first_line = [&](std::string_view kept) {
    return std::string(kMagic).append(kVersion) + ' ' + std::to_string(response.status) + ' ' +
           std::to_string(response.body.size()) + ' ' + std::string(kept) + '\n';
  };
  std::string text = first_line(kKept);
  const bool keep =
      response.whole && text.size() + headers.size() + 1 + response.body.size() <= bytes_max;
  if (!keep) text = first_line(kOmitted);
  // Rather no header than half of them.
  if (keep || text.size() + headers.size() + 1 <= bytes_max) text += headers;
  text += '\n';
  if (keep) text += response.body;
  return text;
}

bool is_stored_response(std::string_view stored) noexcept { return stored.starts_with(kMagic); }

result<StoredResponse> decode_response(std::string_view text) {
  std::string_view rest = text;
  const auto first = take_line(rest);
  if (!first) return corrupt("it has no first line");
  auto stored = parse_first_line(*first);
  if (!stored) return stored;
  for (;;) {
    const auto line = take_line(rest);
    if (!line) return corrupt("its headers do not end");
    if (line->empty()) break;
    const std::size_t colon = line->find(": ");
    if (colon == std::string_view::npos) return corrupt("a header has no colon");
    const std::string_view name = line->substr(0, colon);
    const std::string_view value = line->substr(colon + 2);
    if (!is_well_formed(name, value)) return corrupt("a header must not be sent");
    stored->response.headers.push_back({std::string(name), std::string(value)});
  }
  if (rest.size() != (stored->body_kept ? stored->body_bytes : 0)) {
    return corrupt("its body has another size than it says");
  }
  stored->response.body = rest;
  return stored;
}

}  // namespace idem::http
