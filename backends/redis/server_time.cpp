#include "server_time.hpp"

namespace idem::redis {
namespace {

// A bad oscillator drifts by 100 µs a second. Kept for a second, used for two: while there is
// traffic there is always a guess.
constexpr Micros kBestOf = std::chrono::seconds(1);
constexpr Micros kUsedFor = std::chrono::seconds(2);

}  // namespace

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
