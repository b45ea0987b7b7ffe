#include "failure.hpp"

#include <fmt/core.h>

#include <cstdio>

#include "render.hpp"

namespace idem::cli {

namespace {

std::string general_advice(errc code) {
  switch (code) {
    case errc::unknown:
      return "repeat the command: it may or may not have taken effect";
    case errc::unavailable:
      return "check that the store runs and can be reached, then repeat";
    case errc::busy:
      return "repeat later, or raise busy_timeout in the store's URL";
    case errc::capacity:
      return "make room (a larger disk or limit, or idem store sweep), then repeat";
    case errc::stale_fence:
      return "idem key get KEY   (shows the record as it is now)";
    case errc::denied:
      return "check user, password and rights of the store's URL";
    case errc::too_large:
      return "store a reference to the result instead of the result";
    case errc::internal:
      return "this is a fault of idem: please report it";
    default:
      return {};
  }
}

}  // namespace

Failure::Failure(const Error& error)
    : exit_(exit_code(error.code)), code_(to_string(error.code)), message_(error.message) {
  if (auto advice = general_advice(error.code); !advice.empty())
    advice_.push_back(std::move(advice));
}

namespace {

// Line by line: what a server or a file said may be in there.
std::string printable_lines(std::string_view text) {
  std::string lines;
  while (true) {
    const std::size_t end = text.find('\n');
    lines += printable(text.substr(0, end));
    if (end == std::string_view::npos) return lines;
    lines += '\n';
    text.remove_prefix(end + 1);
  }
}

}  // namespace

void Failure::print(bool json) const {
  if (json) {
    Json document{{"error", code_}, {"message", message_}};
    if (!from_.empty()) document["from"] = from_;
    if (!advice_.empty()) document["try"] = advice_;
    document["exit"] = static_cast<int>(exit_);
    print_document(document);
    return;
  }
  std::string text = fmt::format("{}{}\n", plain_ ? "" : "error: ", printable_lines(message_));
  if (!from_.empty()) text += fmt::format("  from: {}\n", printable(from_));
  const char* label = "  try:  ";
  for (const std::string& advice : advice_) {
    text += fmt::format("{}{}\n", label, advice);
    label = "        ";
  }
  std::fflush(stdout);
  std::fputs(text.c_str(), stderr);
}

void tell_user(const std::string& text) { std::fputs(text.c_str(), stderr); }

}  // namespace idem::cli
