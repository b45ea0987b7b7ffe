#include "envelope.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <charconv>
#include <optional>

namespace idem::cli {

namespace {

constexpr std::string_view kKept = "idem.run/1 exit ";

// Takes "word VALUE" from the front of `line`; the value, or nothing.
std::optional<std::string_view> take_word(std::string_view& line, std::string_view word) {
  if (!line.starts_with(word)) return std::nullopt;
  line.remove_prefix(word.size());
  const std::string_view value = line.substr(0, line.find(' '));
  line.remove_prefix(std::min(line.size(), value.size() + 1));
  return value;
}

template <class Number>
bool parse(std::optional<std::string_view> text, Number& into) {
  if (!text || text->empty()) return false;
  const auto parsed = std::from_chars(text->data(), text->data() + text->size(), into);
  return parsed.ec == std::errc{} && parsed.ptr == text->data() + text->size();
}

}  // namespace

std::string to_envelope(int status, std::string_view output, std::uint64_t output_max) {
  std::string envelope = fmt::format("{}{} size {}\n", kKept, status, output.size());
  if (output.size() <= output_max) return envelope.append(output);
  envelope.pop_back();
  return envelope + fmt::format(" dropped {}\n", Fingerprint::of_bytes(output).hex());
}

result<RunResult> from_envelope(std::string_view envelope) {
  const Error other = fail(errc::corrupt, "the key's result was not stored by idem run");
  const std::size_t line_end = envelope.find('\n');
  if (line_end == std::string_view::npos) return other;
  std::string_view line = envelope.substr(0, line_end);
  RunResult run;
  if (!parse(take_word(line, kKept), run.status)) return other;
  if (!parse(take_word(line, "size "), run.size)) return other;
  if (const auto digest = take_word(line, "dropped ")) {
    const auto parsed = Fingerprint::from_hex(*digest);
    if (!parsed) return other;
    run.kept = false;
    run.digest = *parsed;
    return run;
  }
  run.output = envelope.substr(line_end + 1);
  if (run.output.size() != run.size) return other;
  return run;
}

}  // namespace idem::cli
