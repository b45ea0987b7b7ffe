// The circuit towards a front that may be dead: after a failure it is left alone, then one caller
// tries it again.
#pragma once

#include <atomic>

#include "idem/clock.hpp"

namespace idem::tiered {

// Thread safe, lock-free.
class Circuit {
 public:
  Circuit(Clock& clock, Micros rest) : clock_(clock), rest_(rest) {}

  // True: go ahead, and tell the circuit how it went. While it is broken one caller per rest is let
  // through.
  [[nodiscard]] bool allows() {
    // relaxed: a stale value costs one call to the front or one to the back, both correct
    std::int64_t again = try_again_at_.load(std::memory_order_relaxed);
    if (again == kWhole) return true;
    const std::int64_t now = micros(clock_.now());
    if (now < again) return false;
    return try_again_at_.compare_exchange_strong(again, now + rest_.count(),
                                                 std::memory_order_relaxed);
  }

  void broke() {
    try_again_at_.store(micros(clock_.now()) + rest_.count(), std::memory_order_relaxed);
  }

  // `front_now`: the front's time of the answer. Markers written before it, while the front was not
  // told of what the back decided, are not believed any more.
  void worked(Time front_now) {
    if (try_again_at_.load(std::memory_order_relaxed) == kWhole) return;
    // release: pairs with the load in trusts(); whoever sees the circuit whole sees the mark
    distrusted_until_.store(micros(front_now), std::memory_order_release);
    try_again_at_.store(kWhole, std::memory_order_release);
  }

  // Whether a marker of the front, written at `updated` by its time, may be believed.
  [[nodiscard]] bool trusts(Time updated) const {
    // acquire: pairs with the release in worked()
    return micros(updated) > distrusted_until_.load(std::memory_order_acquire);
  }

 private:
  static constexpr std::int64_t kWhole = 0;
  static std::int64_t micros(Time time) { return time.time_since_epoch().count(); }

  Clock& clock_;
  Micros rest_;
  std::atomic<std::int64_t> try_again_at_{kWhole};
  std::atomic<std::int64_t> distrusted_until_{0};
};

}  // namespace idem::tiered
