#include "values.hpp"

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

std::string from_bytes(std::uint64_t count) {
  for (const auto& [shift, unit] : {std::pair{30U, "GiB"}, {20U, "MiB"}, {10U, "KiB"}}) {
    const std::uint64_t factor = std::uint64_t{1} << shift;
    if (count >= factor && count % factor == 0) return std::to_string(count / factor) + unit;
  }
  return std::to_string(count);
}

}  // namespace idem::config
