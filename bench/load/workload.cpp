#include "load/workload.hpp"

#include <fmt/core.h>

#include <charconv>
#include <vector>

#include "idem/policy.hpp"

namespace idem::bench {
namespace {

constexpr std::uint32_t kOperationsMax = 20'000'000;

std::vector<std::string_view> split(std::string_view text, char at) {
  std::vector<std::string_view> parts;
  while (true) {
    const std::size_t end = text.find(at);
    parts.push_back(text.substr(0, end));
    if (end == std::string_view::npos) return parts;
    text.remove_prefix(end + 1);
  }
}

template <class Number>
bool read(std::string_view text, Number& into) {
  const auto [end, problem] = std::from_chars(text.data(), text.data() + text.size(), into);
  return problem == std::errc() && end == text.data() + text.size();
}

Error malformed(std::string_view text) {
  return fail(errc::invalid_argument,
              fmt::format("'{}' is no choice of keys: unique, hot:COUNT, zipf:COUNT or "
                          "zipf:COUNT:SKEW (0 < SKEW <= 10), COUNT 1 to {}",
                          text, kOperationsMax));
}

bool share(double value) { return value >= 0 && value < 1; }

}  // namespace

result<KeyChoice> parse_key_choice(std::string_view text) {
  const auto parts = split(text, ':');
  KeyChoice choice;
  if (parts[0] == "unique" && parts.size() == 1) return choice;
  if (parts[0] == "hot" && parts.size() == 2) {
    choice.kind = KeyKind::hot;
  } else if (parts[0] == "zipf" && (parts.size() == 2 || parts.size() == 3)) {
    choice.kind = KeyKind::zipf;
  } else {
    return malformed(text);
  }
  if (!read(parts[1], choice.count) || choice.count == 0 || choice.count > kOperationsMax)
    return malformed(text);
  if (parts.size() == 3 &&
      (!read(parts[2], choice.skew) || !(choice.skew > 0 && choice.skew <= 10)))
    return malformed(text);
  return choice;
}

std::string to_string(const KeyChoice& keys) {
  switch (keys.kind) {
    case KeyKind::unique:
      return "unique";
    case KeyKind::hot:
      return fmt::format("hot:{}", keys.count);
    case KeyKind::zipf:
      return fmt::format("zipf:{}:{}", keys.count, keys.skew);
  }
  return "";
}

std::string_view to_string(Callers callers) noexcept {
  return callers == Callers::async ? "async" : "blocking";
}

result<void> check_workload(const Workload& w) {
  const auto refuse = [](std::string text) {
    return fail(errc::invalid_argument, std::move(text));
  };
  if (!share(w.duplicates)) return refuse("duplicates: a share of 0% up to, not including, 100%");
  if (!share(w.crashes)) return refuse("crashes: a share of 0% up to, not including, 100%");
  if (w.payload < kPayloadMin || w.payload > kResultBytesDefault)
    return refuse(fmt::format("payload: {} to {} bytes", kPayloadMin, kResultBytesDefault));
  if (w.work < Micros(0) || w.work > std::chrono::minutes(1)) return refuse("work: 0 to 1m");
  if (w.lease < std::chrono::milliseconds(1) || w.lease > std::chrono::hours(1))
    return refuse("lease: 1ms to 1h");
  if (w.rate < 0 || w.rate > 1e9) return refuse("rate: up to 1G operations a second");
  if (w.operations == 0 || w.operations > kOperationsMax)
    return refuse(fmt::format("operations: 1 to {}", kOperationsMax));
  return {};
}

}  // namespace idem::bench
