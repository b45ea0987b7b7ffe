#include "capacity/curve.hpp"

namespace idem::bench {
namespace {

// How many points from the first on satisfy `good`.
template <class Good>
std::size_t leading(const std::vector<CurvePoint>& points, Good good) {
  std::size_t count = 0;
  while (count < points.size() && good(points[count])) ++count;
  return count;
}

}  // namespace

std::optional<double> knee(const std::vector<CurvePoint>& points) {
  if (points.empty()) return std::nullopt;
  const auto lightest = points.front().claims.quantile(0.99);
  if (!lightest) return std::nullopt;
  const double bent = kKneeFactor * static_cast<double>(*lightest);
  const std::size_t straight = leading(points, [&](const CurvePoint& point) {
    const auto p99 = point.claims.quantile(0.99);
    return point.reached && p99 && static_cast<double>(*p99) < bent;
  });
  if (straight == 0) return std::nullopt;
  return points[straight - 1].offered;
}

std::optional<double> highest_within(const std::vector<CurvePoint>& points) {
  const std::size_t good = leading(points, [](const CurvePoint& point) { return point.within; });
  if (good == 0) return std::nullopt;
  return points[good - 1].offered;
}

std::optional<double> next_to_try(const std::vector<CurvePoint>& points) {
  const std::size_t good = leading(points, [](const CurvePoint& point) { return point.within; });
  if (good == points.size()) return std::nullopt;
  const double low = good == 0 ? 0 : points[good - 1].offered;
  return (low + points[good].offered) / 2;
}

}  // namespace idem::bench
