// What latency is asked for: a quantile and its limit, "p99<5ms".
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "idem/error.hpp"
#include "load/round.hpp"

namespace idem::bench {

struct Slo {
  double quantile = 0.99;
  Nanos limit = 0;
  std::string text;  // as it was written

  friend bool operator==(const Slo&, const Slo&) = default;
};

// "p50<1ms", "p99<5ms", "p99.9<20ms". invalid_argument: anything else.
[[nodiscard]] result<Slo> parse_slo(std::string_view text);

// Of claims, whatever they were told: winner, replay, in progress and takeover together.
[[nodiscard]] Histogram all_claims(const Latencies& latencies);

// Whether the histogram keeps the limit; without samples it does not.
[[nodiscard]] bool holds(const Slo& slo, const Histogram& claims);

}  // namespace idem::bench
