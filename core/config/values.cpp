#include "values.hpp"

#include <algorithm>
#include <charconv>
#include <limits>

#include "idem/redacted.hpp"
#include "idem/store_url.hpp"

namespace idem::config {
namespace {

Error wrong(std::string what) { return idem::fail(errc::invalid_argument, std::move(what)); }

// A whole number in decimal digits; nullopt for anything else.
result<std::uint64_t> digits(const Value& value, std::string_view unit) {
  const std::string& text = value.text;
  const std::string wanted = " is not a whole number" + std::string(unit) + " greater than zero";
  if (value.quoted) return wrong("\"" + text + "\" is text, not a number");
  std::uint64_t number = 0;
  const char* const end = text.data() + text.size();
  const auto parsed = std::from_chars(text.data(), end, number);
  if (parsed.ec == std::errc::result_out_of_range) return wrong(text + " is too large");
  if (text.empty() || parsed.ec != std::errc() || parsed.ptr != end || number == 0) {
    return wrong("'" + redacted(text) + "'" + wanted);
  }
  return number;
}

}  // namespace

result<bool> to_bool(const Value& value) {
  if (value.quoted) return wrong("\"" + value.text + "\" is text, not true or false");
  if (value.text == "true") return true;
  if (value.text == "false") return false;
  return wrong("'" + redacted(value.text) + "' is neither true nor false");
}

result<Duration> to_duration(const Value& value) { return parse_duration(value.text); }

result<Duration> to_seconds(const Value& value) {
  const auto number = digits(value, " of seconds");
  if (!number) return number.error();
  constexpr auto kMax = std::chrono::duration_cast<std::chrono::seconds>(kDurationMax).count();
  if (*number > static_cast<std::uint64_t>(kMax)) {
    return wrong(value.text + " seconds are more than the cap of 100 years");
  }
  return Duration(std::chrono::seconds(static_cast<std::int64_t>(*number)));
}

result<std::uint64_t> to_count(const Value& value) {
  const auto count = parse_count(value.text);
  if (!count) return count.error();
  if (*count == 0) return wrong("it must be greater than zero");
  return count;
}

result<std::uint32_t> to_number(const Value& value) {
  const auto number = digits(value, "");
  if (!number) return number.error();
  if (*number > std::numeric_limits<std::uint32_t>::max())
    return wrong(value.text + " is too large");
  return static_cast<std::uint32_t>(*number);
}

// Methods are compared with case (RFC 9110 §9.1): "put" would match no request, in silence.
result<std::string> to_method(const Value& value) {
  const std::string& text = value.text;
  if (text == "*") return text;
  if (!http::is_header_name(text) || text.find('*') != std::string::npos) {
    return wrong("'" + text + "' is no method");
  }
  const auto is_small = [](char c) { return c >= 'a' && c <= 'z'; };
  if (std::none_of(text.begin(), text.end(), is_small)) return text;
  std::string capital = text;
  for (char& c : capital) c = is_small(c) ? static_cast<char>(c - 'a' + 'A') : c;
  return wrong("'" + text + "' matches no request: write " + capital);
}

// Only what can match the path of some request.
result<std::string> to_route_path(const Value& value) {
  const std::string& text = value.text;
  if (!text.starts_with('/')) return wrong("'" + text + "': it must start with '/'");
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte <= 0x20 || byte >= 0x7F || c == '?' || c == '#') {
      return wrong("'" + text + "' matches no request: a path is visible ASCII without query");
    }
  }
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = std::min(text.find('/', at + 1), text.size());
    const std::string segment = text.substr(at + 1, end - at - 1);
    if (segment == "**" && end != text.size()) {
      return wrong("'" + text + "' matches no request: '**' stands at the end only");
    }
    if (segment != "*" && segment != "**" && segment.find('*') != std::string::npos) {
      return wrong("'" + text + "' matches no request: '*' is a whole segment, as in /orders/*");
    }
    at = end;
  }
  return text;
}

std::string from_bytes(std::uint64_t count) {
  for (const auto& [shift, unit] : {std::pair{30U, "GiB"}, {20U, "MiB"}, {10U, "KiB"}}) {
    const std::uint64_t factor = std::uint64_t{1} << shift;
    if (count >= factor && count % factor == 0) return std::to_string(count / factor) + unit;
  }
  return std::to_string(count);
}

}  // namespace idem::config
