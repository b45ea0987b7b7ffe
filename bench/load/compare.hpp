// Two measurements, row by row: faster, slower, or no difference. Pure.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "idem/error.hpp"
#include "load/report.hpp"

namespace idem::bench {

enum class Verdict : std::uint8_t { same, faster, slower, unknown };
[[nodiscard]] std::string_view to_string(Verdict verdict) noexcept;

struct Comparison {
  std::string store;
  std::uint32_t clients = 0;
  double before = 0;  // median rate
  double after = 0;
  double change = 0;                   // after / before - 1
  std::optional<double> p;             // of the rank test; none: too few rounds
  Verdict verdict = Verdict::unknown;  // unknown: too few rounds, void, or in one report only
  std::string reason;                  // of unknown
};

// A difference is only called one if the rank test finds it at 5 % *and* the intervals of the two
// medians do not meet *and* it is larger than `noise`: rounds of one run resemble each other more
// than two runs do, which no test of rounds can see.
inline constexpr double kNoiseUsual = 0.05;

// Two documents of idem.bench/1. invalid_argument: another schema, or measured under another load
// (plan, payload, work, lease or rate), which no comparison can mend.
[[nodiscard]] result<std::vector<Comparison>> compare(const Json& before, const Json& after,
                                                      double noise = kNoiseUsual);

}  // namespace idem::bench
