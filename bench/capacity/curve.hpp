// A load curve: what callers wait at each offered rate, and what may be read from it. Pure.
#pragma once

#include <optional>
#include <vector>

#include "load/histogram.hpp"

namespace idem::bench {

struct CurvePoint {
  double offered = 0;   // claims/s
  double achieved = 0;  // of them, answered; median of the rounds
  bool reached = true;  // the offered rate was
  Histogram claims;     // from the due time, all rounds
  bool within = false;  // the rate was reached, and most rounds kept the goal
};

// p99 may grow to so many times that of the lightest load before the curve counts as bent.
inline constexpr double kKneeFactor = 3;

// The highest offered rate before the knee: up to it every rate was reached and p99 stayed below
// kKneeFactor times that of the lightest load. nullopt: not even the lightest was reached.
// `points` in ascending order of offered.
[[nodiscard]] std::optional<double> knee(const std::vector<CurvePoint>& points);

// The highest offered rate such that it and all lower ones are within the goal.
[[nodiscard]] std::optional<double> highest_within(const std::vector<CurvePoint>& points);

// Half way between that and the lowest rate above it; nullopt if there is none above: nothing to
// look for.
[[nodiscard]] std::optional<double> next_to_try(const std::vector<CurvePoint>& points);

}  // namespace idem::bench
