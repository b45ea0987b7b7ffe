// Options of ECharts. Values are a document's own numbers; "@si" and "@time" name the formatters
// that the page's script puts in their place. Series differ by marker and line, not by colour
// alone.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "report/page.hpp"

namespace idem::bench {

enum class Unit : std::uint8_t { per_second, nanos };

struct IntervalBar {
  std::string label;
  double middle = 0;
  std::optional<double> low;
  std::optional<double> high;
};
// A point with its interval for each label, on a logarithmic axis. `mark`: a line across, if > 0.
[[nodiscard]] PageChart interval_chart(std::string id, std::string title,
                                       const std::vector<IntervalBar>& bars, Unit unit,
                                       double mark = 0, const std::string& mark_name = "");

struct ChartLine {
  std::string name;
  std::vector<std::pair<double, double>> points;  // x, y
};
// Latency (logarithmic) over a rate. `mark`: a level, if > 0.
[[nodiscard]] PageChart curve_chart(std::string id, std::string title,
                                    const std::vector<ChartLine>& lines, double mark = 0,
                                    const std::string& mark_name = "");
// What each round gave, in order: shows drift and noise.
[[nodiscard]] PageChart rounds_chart(std::string id, const std::vector<ChartLine>& lines);

// Latency by percentile: `members` of histogram objects.
struct PercentileLine {
  std::string name;
  Json histogram;
};
[[nodiscard]] PageChart percentile_chart(std::string id, std::string title,
                                         const std::vector<PercentileLine>& lines);

struct HeatCell {
  std::size_t column = 0;
  std::size_t row = 0;
  double value = 0;
};
// Rates, darker is more; the figure stands in the cell.
[[nodiscard]] PageChart heat_chart(std::string id, std::string title,
                                   const std::vector<std::string>& columns,
                                   const std::vector<std::string>& rows,
                                   const std::vector<HeatCell>& cells);

}  // namespace idem::bench
