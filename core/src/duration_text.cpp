// Durations and counts as people write them.
#include <array>
#include <charconv>
#include <cmath>
#include <limits>
#include <string>

#include "idem/redacted.hpp"
#include "idem/store_url.hpp"

namespace idem {
namespace {

struct Unit {
  std::string_view name;
  std::uint64_t micros;
};
// Largest first, as they must stand in a text.
constexpr std::array kUnits{Unit{"d", 86'400'000'000}, Unit{"h", 3'600'000'000},
                            Unit{"m", 60'000'000},     Unit{"s", 1'000'000},
                            Unit{"ms", 1'000},         Unit{"us", 1}};

struct Scale {
  std::string_view name;
  std::uint64_t factor;
};
constexpr std::array kScales{Scale{"", 1},
                             Scale{"k", 1'000},
                             Scale{"M", 1'000'000},
                             Scale{"G", 1'000'000'000},
                             Scale{"KiB", std::uint64_t{1} << 10},
                             Scale{"MiB", std::uint64_t{1} << 20},
                             Scale{"GiB", std::uint64_t{1} << 30},
                             Scale{"TiB", std::uint64_t{1} << 40}};

Error bad_duration(std::string_view text, const std::string& why) {
  return idem::fail(errc::invalid_argument, "'" + redacted(text) + "' is not a duration: " + why +
                                                "; write it like 30s, 500ms, 0.5s, 1h30m");
}

bool is_digit(char c) { return c >= '0' && c <= '9'; }

std::size_t number_length(std::string_view text) {
  std::size_t length = 0;
  while (length < text.size() && (is_digit(text[length]) || text[length] == '.')) ++length;
  return length;
}

}  // namespace

result<Duration> parse_duration(std::string_view text) {
  std::string_view rest = text;
  long double micros = 0;
  std::size_t next_unit = 0;
  if (rest.empty()) return bad_duration(text, "it is empty");
  if (rest.front() == '-') return bad_duration(text, "it is negative");
  while (!rest.empty()) {
    const std::size_t digits = number_length(rest);
    double number = 0;
    const auto parsed =
        std::from_chars(rest.data(), rest.data() + digits, number, std::chars_format::fixed);
    if (digits == 0 || parsed.ec != std::errc() || parsed.ptr != rest.data() + digits) {
      return bad_duration(text, "a number is expected before the unit");
    }
    rest.remove_prefix(digits);
    std::size_t letters = 0;
    while (letters < rest.size() && !is_digit(rest[letters]) && rest[letters] != '.') ++letters;
    if (letters == 0) return bad_duration(text, "the unit is missing");
    std::size_t unit = next_unit;
    while (unit < kUnits.size() && kUnits[unit].name != rest.substr(0, letters)) ++unit;
    if (unit == kUnits.size()) {
      return bad_duration(text, "'" + std::string(rest.substr(0, letters)) +
                                    "' is no unit here (d, h, m, s, ms, us, largest first)");
    }
    rest.remove_prefix(letters);
    micros += static_cast<long double>(number) * static_cast<long double>(kUnits[unit].micros);
    next_unit = unit + 1;
  }
  if (micros > static_cast<long double>(kDurationMax.count())) {
    return bad_duration(text, "it is more than the cap of 100 years");
  }
  const auto rounded = std::llround(micros);
  if (rounded <= 0) return bad_duration(text, "it must be greater than zero");
  return Duration(Micros(rounded));
}

std::string format_duration(Micros d) {
  if (d == Micros(0)) return "0s";
  std::string text = d < Micros(0) ? "-" : "";
  auto rest = static_cast<std::uint64_t>(d < Micros(0) ? -d.count() : d.count());
  for (const Unit& unit : kUnits) {
    if (rest < unit.micros) continue;
    text += std::to_string(rest / unit.micros);
    text += unit.name;
    rest %= unit.micros;
  }
  return text;
}

result<std::uint64_t> parse_count(std::string_view text) {
  std::uint64_t number = 0;
  const auto parsed = std::from_chars(text.data(), text.data() + text.size(), number);
  const std::string_view suffix = text.substr(static_cast<std::size_t>(parsed.ptr - text.data()));
  if (parsed.ec == std::errc()) {
    for (const Scale& scale : kScales) {
      if (scale.name != suffix) continue;
      if (number > std::numeric_limits<std::uint64_t>::max() / scale.factor) break;
      return number * scale.factor;
    }
  }
  return idem::fail(
      errc::invalid_argument,
      "'" + redacted(text) + "' is not a count; write it like 64, 10k, 1M, 4KiB, 1GiB");
}

}  // namespace idem
