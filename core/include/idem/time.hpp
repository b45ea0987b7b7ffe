// Instants and durations. One unit everywhere: microseconds.
#pragma once

#include <chrono>
#include <cstdint>
#include <limits>

namespace idem {

using Micros = std::chrono::microseconds;

// An instant of a store's clock, in microseconds since 1970-01-01 UTC.
using Time = std::chrono::sys_time<Micros>;

// A length of time given by a caller. Converts from any chrono duration without overflow: what does
// not fit becomes the largest or smallest value, which a later check refuses (see kDurationMax).
class Duration {
 public:
  constexpr Duration() = default;

  template <class Rep, class Period>
  constexpr Duration(std::chrono::duration<Rep, Period> d)  // NOLINT: implicit by design
      : micros_(saturate(d)) {}

  [[nodiscard]] constexpr Micros micros() const { return Micros(micros_); }
  constexpr operator Micros() const { return Micros(micros_); }  // NOLINT: implicit by design

  friend constexpr auto operator<=>(Duration, Duration) = default;

 private:
  template <class Rep, class Period>
  static constexpr std::int64_t saturate(std::chrono::duration<Rep, Period> d) {
    constexpr auto kMax = std::numeric_limits<std::int64_t>::max();
    constexpr auto kMin = std::numeric_limits<std::int64_t>::min();
    const long double micros = static_cast<long double>(d.count()) *
                               static_cast<long double>(Period::num) * 1e6L /
                               static_cast<long double>(Period::den);
    if (!(micros < static_cast<long double>(kMax))) return kMax;
    if (!(micros > static_cast<long double>(kMin))) return kMin;
    return std::chrono::duration_cast<Micros>(d).count();
  }

  std::int64_t micros_ = 0;
};

// The cap of every duration: 100 years of 365.25 days. More is invalid_argument.
inline constexpr Micros kDurationMax = std::chrono::hours(24 * 36525);

// 2024-01-01 00:00:00 UTC: where a virtual clock starts unless told otherwise.
inline constexpr Time kVirtualStart{std::chrono::seconds(1'704'067'200)};

}  // namespace idem
