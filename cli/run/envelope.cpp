#include "envelope.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <charconv>
#include <optional>
#include <utility>

namespace idem::cli {

namespace {

constexpr int kStatusMax = 255;  // of a process
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

void OutputKeeper::add(std::string_view piece) {
  run_.size += piece.size();
  if (run_.kept && run_.size > max_) {
    run_.kept = false;
    digest_.add(std::exchange(run_.output, {}));
  }
  if (run_.kept) {
    run_.output += piece;
  } else {
    digest_.add(piece);
  }
}

RunResult OutputKeeper::end(int status) {
  run_.status = status;
  if (!run_.kept) run_.digest = digest_.end();
  return std::move(run_);
}

std::string to_envelope(const RunResult& run) {
  std::string line = fmt::format("{}{} size {}", kKept, run.status, run.size);
  if (run.kept) return std::move(line.append("\n").append(run.output));
  return line + fmt::format(" dropped {}\n", run.digest.hex());
}

result<RunResult> from_envelope(std::string_view envelope) {
  const Error other = fail(errc::corrupt, "the key's result was not stored by idem run");
  const std::size_t line_end = envelope.find('\n');
  if (line_end == std::string_view::npos) return other;
  std::string_view line = envelope.substr(0, line_end);
  RunResult run;
  if (!parse(take_word(line, kKept), run.status) || run.status < 0 || run.status > kStatusMax)
    return other;
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
