// What a server's clock says now, without asking: as it was last heard, plus the time gone by here.
//
// A reply is always older than the moment at which it is read, so every hearing is behind by the
// reply's way, and so is the guess. The best hearing of a second counts.
#pragma once

#include <mutex>
#include <optional>

#include "idem/time.hpp"
#include "resp.hpp"

namespace idem::redis {

// What a reply to TIME says; Time{} if it is none.
[[nodiscard]] Time told_time(const Reply& reply);

// Thread safe.
class ServerTime {
 public:
  // `server`: what it said; `here`: system_clock() when that had arrived.
  void hear(Time server, Time here);

  // Not ahead of the server's clock, unless that was set back meanwhile. nullopt: heard too long
  // ago, or never.
  [[nodiscard]] std::optional<Time> guess(Time here) const;

 private:
  mutable std::mutex mutex_;
  std::optional<Micros> ahead_;  // of here
  Time heard_{};                 // when `ahead_` was measured
};

}  // namespace idem::redis
