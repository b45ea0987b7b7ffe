// Two measurements, or two builds measured in turns, row by row: faster, slower, or no difference.
// Pure.
#pragma once

#include <optional>
#include <span>
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
  double change = 0;                   // after / before - 1; in turns the median of the pairs'
  std::optional<double> p;             // of the test; none: too few rounds or pairs
  Verdict verdict = Verdict::unknown;  // unknown: too few, void, or in one report only
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

// Fewer pairs cannot show anything at 1 %: even if all agree, 7 do so by chance in 2 of 128.
inline constexpr std::size_t kPairsForVerdict = 8;

// Documents of two builds that were measured in turns: before[i] and after[i] next to each other in
// time, so that what the machine does over minutes hits both of a pair alike and cancels out. Each
// pair has one ratio, of the medians of its rounds; a difference is only called one if the signed
// rank test of the ratios finds it at 1 % and their median is further from 1 than `noise`. Unlike
// compare(), which must allow for two runs that drift apart, it finds differences of a few percent.
//
// As many of one as of the other, at least one. invalid_argument: as compare(), for any two of
// them.
[[nodiscard]] result<std::vector<Comparison>> compare_pairs(std::span<const Json> before,
                                                            std::span<const Json> after,
                                                            double noise = kNoiseUsual);

}  // namespace idem::bench
