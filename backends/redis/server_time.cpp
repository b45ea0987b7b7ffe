#include "server_time.hpp"

#include <array>
#include <charconv>

namespace idem::redis {
namespace {

// A bad oscillator drifts by 100 µs a second. Kept for a second, used for two: while there is
// traffic there is always a guess.
constexpr Micros kBestOf = std::chrono::seconds(1);
constexpr Micros kUsedFor = std::chrono::seconds(2);

constexpr std::int64_t kSecondsMax = 1LL << 40;  // more would not be a time in µs

}  // namespace

Time told_time(const Reply& reply) {
  if (reply.type != Reply::Type::array || reply.elements.size() != 2) return {};
  std::array<std::int64_t, 2> parts{};
  for (std::size_t i = 0; i < parts.size(); ++i) {
    const std::string& text = reply.elements[i].text;
    const auto end = text.data() + text.size();
    const auto [stop, error] = std::from_chars(text.data(), end, parts[i]);
    if (error != std::errc{} || stop != end || parts[i] < 0 || parts[i] > kSecondsMax) return {};
  }
  return Time(Micros(parts[0] * 1'000'000 + parts[1]));
}

void ServerTime::hear(Time server, Time here) {
  const std::lock_guard guard(mutex_);
  const Micros ahead = server - here;
  if (ahead_ && ahead < *ahead_ && here - heard_ < kBestOf) return;
  ahead_ = ahead;
  heard_ = here;
}

std::optional<Time> ServerTime::guess(Time here) const {
  const std::lock_guard guard(mutex_);
  if (!ahead_ || here - heard_ >= kUsedFor) return std::nullopt;
  return here + *ahead_;
}

}  // namespace idem::redis
