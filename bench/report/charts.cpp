#include "report/charts.hpp"

#include <algorithm>
#include <array>
#include <cmath>

#include "load/units.hpp"

namespace idem::bench {
namespace {

constexpr std::array<const char*, 6> kSymbols{"circle",  "rect", "triangle",
                                              "diamond", "pin",  "arrow"};
constexpr std::array<const char*, 3> kDashes{"solid", "dashed", "dotted"};

Json value_axis(Unit unit, bool logarithmic, const char* name) {
  return Json{
      {"type", logarithmic ? "log" : "value"},
      {"name", name},
      {"nameLocation", "middle"},
      {"nameGap", 28},
      {"axisLabel", {{"formatter", unit == Unit::nanos ? "@time" : "@si"}, {"hideOverlap", true}}}};
}

Json mark_line(double at, const std::string& name, bool horizontal) {
  return Json{{"silent", true},
              {"symbol", "none"},
              {"lineStyle", {{"type", "dashed"}}},
              {"label", {{"formatter", name}, {"position", horizontal ? "insideEndTop" : "end"}}},
              {"data", Json::array({Json{{horizontal ? "yAxis" : "xAxis", at}}})}};
}

Json line_series(const std::string& name, std::size_t index) {
  return Json{{"type", "line"},
              {"name", name},
              {"symbol", kSymbols[index % kSymbols.size()]},
              {"symbolSize", 9},
              {"lineStyle", {{"type", kDashes[index / kSymbols.size() % kDashes.size()]}}},
              {"data", Json::array()}};
}

Json base(Unit unit) {
  return Json{
      {"animation", false},
      {"grid", {{"containLabel", true}, {"left", 16}, {"right", 32}, {"top", 48}, {"bottom", 40}}},
      {"legend", {{"top", 4}, {"type", "scroll"}}},
      {"tooltip",
       {{"trigger", "item"}, {"valueFormatter", unit == Unit::nanos ? "@time" : "@si"}}}};
}

}  // namespace

PageChart interval_chart(std::string id, std::string title, const std::vector<IntervalBar>& bars,
                         Unit unit, double mark, const std::string& mark_name) {
  Json option = base(unit);
  option.erase("legend");
  option["grid"]["top"] = 24;
  option["xAxis"] = value_axis(unit, true, unit == Unit::nanos ? "time" : "per second");
  Json labels = Json::array();
  Json middles = Json::array();
  Json intervals = Json::array();
  for (const IntervalBar& bar : bars) {
    labels.push_back(bar.label);
    middles.push_back(Json::array({bar.middle, bar.label}));
    if (!bar.low || !bar.high) continue;
    intervals.push_back(Json::array({*bar.low, bar.label}));
    intervals.push_back(Json::array({*bar.high, bar.label}));
    intervals.push_back(Json::array({"-", bar.label}));  // lifts the pen
  }
  option["yAxis"] = Json{{"type", "category"}, {"inverse", true}, {"data", labels}};
  option["series"] = Json::array({Json{{"type", "line"},
                                       {"name", "interval"},
                                       {"symbol", "rect"},
                                       {"symbolSize", Json::array({2, 12})},
                                       {"lineStyle", {{"width", 2}}},
                                       {"data", intervals}},
                                  Json{{"type", "scatter"},
                                       {"name", "median"},
                                       {"symbol", "diamond"},
                                       {"symbolSize", 12},
                                       {"data", middles}}});
  if (mark > 0) option["series"][1]["markLine"] = mark_line(mark, mark_name, false);
  return {std::move(id), std::move(title), "", std::move(option),
          static_cast<int>(80 + 28 * bars.size())};
}

PageChart curve_chart(std::string id, std::string title, const std::vector<ChartLine>& lines,
                      double mark, const std::string& mark_name) {
  Json option = base(Unit::nanos);
  option["xAxis"] = value_axis(Unit::per_second, false, "offered per second");
  option["yAxis"] = value_axis(Unit::nanos, true, "");
  option["series"] = Json::array();
  for (std::size_t i = 0; i < lines.size(); ++i) {
    Json series = line_series(lines[i].name, i);
    for (const auto& [x, y] : lines[i].points) series["data"].push_back(Json::array({x, y}));
    if (i == 0 && mark > 0) series["markLine"] = mark_line(mark, mark_name, true);
    option["series"].push_back(std::move(series));
  }
  return {std::move(id), std::move(title), "", std::move(option), 360};
}

PageChart rounds_chart(std::string id, const std::vector<ChartLine>& lines) {
  Json option = base(Unit::per_second);
  option["xAxis"] = Json{{"type", "value"}, {"name", "round"},  {"nameLocation", "middle"},
                         {"nameGap", 28},   {"minInterval", 1}, {"min", 1}};
  option["yAxis"] = value_axis(Unit::per_second, true, "");
  option["series"] = Json::array();
  for (std::size_t i = 0; i < lines.size(); ++i) {
    Json series = line_series(lines[i].name, i);
    series["type"] = "scatter";
    for (const auto& [x, y] : lines[i].points) series["data"].push_back(Json::array({x, y}));
    option["series"].push_back(std::move(series));
  }
  return {std::move(id), "Every round",
          "Operations per second of each round in the order they were run: drift and noise show.",
          std::move(option), 320};
}

PageChart percentile_chart(std::string id, std::string title,
                           const std::vector<PercentileLine>& lines) {
  static constexpr std::array<std::pair<const char*, const char*>, 5> kMembers{
      {{"p50", "50%"}, {"p90", "90%"}, {"p99", "99%"}, {"p999", "99.9%"}, {"max", "longest"}}};
  Json option = base(Unit::nanos);
  Json names = Json::array();
  for (const auto& [member, name] : kMembers) names.push_back(name);
  option["xAxis"] = Json{{"type", "category"}, {"data", names}};
  option["yAxis"] = value_axis(Unit::nanos, true, "");
  option["series"] = Json::array();
  for (std::size_t i = 0; i < lines.size(); ++i) {
    if (!lines[i].histogram.is_object()) continue;
    Json series = line_series(lines[i].name, i);
    for (const auto& [member, name] : kMembers)
      series["data"].push_back(lines[i].histogram.value(member, Json("-")));
    option["series"].push_back(std::move(series));
  }
  return {std::move(id), std::move(title), "", std::move(option), 360};
}

PageChart heat_chart(std::string id, std::string title, const std::vector<std::string>& columns,
                     const std::vector<std::string>& rows, const std::vector<HeatCell>& cells) {
  Json option = base(Unit::per_second);
  option.erase("legend");
  option["grid"]["top"] = 8;
  option["tooltip"] = Json{{"show", false}};
  option["xAxis"] = Json{{"type", "category"}, {"data", columns}};
  option["yAxis"] = Json{{"type", "category"}, {"inverse", true}, {"data", rows}};
  Json data = Json::array();
  double low = INFINITY;
  double high = -INFINITY;
  for (const HeatCell& cell : cells) {
    const double shade = std::log10(std::max(cell.value, 1.0));
    low = std::min(low, shade);
    high = std::max(high, shade);
    data.push_back(Json{{"value", Json::array({cell.column, cell.row, shade})},
                        {"label", {{"show", true}, {"formatter", si(cell.value)}}}});
  }
  if (cells.empty()) low = high = 0;
  // Light enough for black figures at both ends.
  option["visualMap"] = Json{{"show", false},
                             {"min", low},
                             {"max", std::max(high, low + 1)},
                             {"inRange", {{"color", Json::array({"#f4f8fb", "#7fb8de"})}}}};
  option["series"] = Json::array(
      {Json{{"type", "heatmap"}, {"label", {{"show", true}, {"color", "#111"}}}, {"data", data}}});
  return {std::move(id), std::move(title), "", std::move(option),
          static_cast<int>(60 + 30 * rows.size())};
}

}  // namespace idem::bench
