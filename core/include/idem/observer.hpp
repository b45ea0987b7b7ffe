// Hooks and counters: what a service tells about itself. The key is never part of a counter.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <string_view>

#include "idem/error.hpp"
#include "idem/key.hpp"
#include "idem/outcome.hpp"

namespace idem {

// Called from whichever thread does the work, before the verb returns. Must not throw, must be
// short. The key is borrowed; log a digest of it rather than the key.
class Observer {
 public:
  virtual ~Observer() = default;
  virtual void on_claimed(KeyRef, const Granted&) noexcept {}
  virtual void on_completed(KeyRef, const Completed&) noexcept {}
  virtual void on_failed(KeyRef, FailKind) noexcept {}
  virtual void on_lost(KeyRef, const Token&) noexcept {}
  virtual void on_conflict(KeyRef, const Token&) noexcept {}
  // A lease handle was destroyed while its record was processing: it will lapse by itself.
  virtual void on_dropped(KeyRef, const Token&) noexcept {}
  virtual void on_error(std::string_view /*verb*/, KeyRef, const Error&) noexcept {}
};

enum class Counter : std::uint8_t {
  claimed_fresh,
  claimed_retry,
  claimed_takeover,
  claimed_resumed,
  claimed_bypass,
  in_progress,
  replayed,
  mismatched,
  backoff,
  failed_before,
  exhausted,
  in_doubt,
  already_done,
  completed,
  completed_late,
  completed_already,
  failed,
  released,
  renewed,
  lost,
  conflict,
  gone,
  dropped,
  swept_abandoned,
  swept_expired,
  unknown_retried,  // store answers `unknown` that were resolved by repeating
  errors,
  kCount,
};
[[nodiscard]] std::string_view to_string(Counter counter) noexcept;

// A snapshot; single values are exact, their sum may be off by calls in flight.
struct Counters {
  std::array<std::uint64_t, static_cast<std::size_t>(Counter::kCount)> values{};
  [[nodiscard]] std::uint64_t operator[](Counter counter) const {
    return values[static_cast<std::size_t>(counter)];
  }
};

}  // namespace idem
