#include "load/units.hpp"

#include <fmt/core.h>

#include <array>
#include <span>

namespace idem::bench {
namespace {

std::string scaled(double value, double step, std::span<const char* const> units) {
  std::size_t unit = 0;
  // 999.5 would be shown as 1000: it belongs to the next unit.
  while (value >= 999.5 && unit + 1 < units.size()) {
    value /= step;
    ++unit;
  }
  const int digits = value >= 99.95 ? 0 : (value >= 9.995 ? 1 : 2);
  return fmt::format("{:.{}f}{}", value, digits, units[unit]);
}

}  // namespace

std::string si(double value) {
  static constexpr std::array<const char*, 5> kUnits{"", "k", "M", "G", "T"};
  if (value == 0) return "0";
  return scaled(value, 1000, kUnits);
}

std::string duration_text(std::optional<Nanos> d) {
  static constexpr std::array<const char*, 4> kUnits{"ns", "us", "ms", "s"};
  if (!d) return "-";
  if (*d < 1000) return fmt::format("{}ns", *d);
  return scaled(static_cast<double>(*d), 1000, kUnits);
}

std::string percent(double share) { return fmt::format("{:.1f}%", share * 100); }

}  // namespace idem::bench
