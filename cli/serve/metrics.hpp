// Counters of the proxy, and everything as Prometheus text. Keys are never part of it.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <string>

#include "idem/http.hpp"

namespace idem::serve {

// What a client was told.
enum class Told : std::uint8_t {
  executed,  // keyed, the upstream's answer
  passed,    // without a key, the upstream's answer
  answered,  // the guard's own answer, by reason
  refused,   // the proxy's own: malformed, too large, too slow
  kCount,
};

// How a request to the upstream ended.
enum class UpstreamEnd : std::uint8_t {
  answered,
  not_sent,   // surely not received: no connection, or not one byte was taken
  cut,        // may have acted: the connection broke before the whole answer was here
  timed_out,  // may have acted
  too_large,  // acted: its answer is over the limit
  kCount,
};

// What became of a claim that the store may have taken down too late for its request.
enum class LateEnd : std::uint8_t {
  released,
  given_up,  // too many at once, or the proxy ended: `idem key list --stuck` may show it
  kCount,
};

// Thread safe.
class Metrics {
 public:
  void count(Told told) { add(told_[static_cast<std::size_t>(told)]); }
  void count(http::Reason reason) { add(reasons_[static_cast<std::size_t>(reason)]); }
  void count(UpstreamEnd end) { add(upstream_[static_cast<std::size_t>(end)]); }
  void count(LateEnd end) { add(late_[static_cast<std::size_t>(end)]); }
  void set_late_claims(std::size_t number) { late_claims_ = number; }
  void count_reused() { add(reused_); }
  void count_waited() { add(waited_); }
  void connection_opened() { ++connections_; }
  void connection_closed() { --connections_; }
  [[nodiscard]] std::int64_t connections() const { return connections_; }

  [[nodiscard]] std::string text(const http::Guard& guard) const;

 private:
  using Number = std::atomic<std::uint64_t>;
  // relaxed: a counter orders nothing
  static void add(Number& number) { number.fetch_add(1, std::memory_order_relaxed); }

  std::array<Number, static_cast<std::size_t>(Told::kCount)> told_{};
  std::array<Number, static_cast<std::size_t>(http::Reason::bad_scope) + 1> reasons_{};
  std::array<Number, static_cast<std::size_t>(UpstreamEnd::kCount)> upstream_{};
  std::array<Number, static_cast<std::size_t>(LateEnd::kCount)> late_{};
  Number late_claims_{0};
  Number reused_{0};
  Number waited_{0};
  std::atomic<std::int64_t> connections_{0};
};

}  // namespace idem::serve
