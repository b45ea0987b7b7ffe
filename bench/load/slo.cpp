#include "load/slo.hpp"

#include <charconv>

#include "idem/store_url.hpp"

namespace idem::bench {
namespace {

Error malformed(std::string_view text) {
  return fail(errc::invalid_argument, "'" + std::string(text) +
                                          "' is no latency goal: write p50<1ms, p99<5ms or "
                                          "p99.9<20ms");
}

}  // namespace

result<Slo> parse_slo(std::string_view text) {
  const std::size_t less = text.find('<');
  if (!text.starts_with('p') || less == std::string_view::npos) return malformed(text);
  double percentile = 0;
  const std::string_view number = text.substr(1, less - 1);
  const auto [end, problem] =
      std::from_chars(number.data(), number.data() + number.size(), percentile);
  const auto limit = parse_duration(text.substr(less + 1));
  if (problem != std::errc() || end != number.data() + number.size() || !(percentile > 0) ||
      !(percentile < 100) || !limit)
    return malformed(text);
  return Slo{percentile / 100, limit->micros().count() * 1000, std::string(text)};
}

Histogram all_claims(const Latencies& latencies) {
  Histogram all;
  for (const Role role : {Role::winner, Role::replay, Role::in_progress, Role::takeover})
    all.merge(latencies[static_cast<std::size_t>(role)]);
  return all;
}

bool holds(const Slo& slo, const Histogram& claims) {
  const auto found = claims.quantile(slo.quantile);
  return found && *found < slo.limit;
}

}  // namespace idem::bench
