#include <prometheus/text_serializer.h>

#include <string_view>
#include <utility>

#include "idem/prometheus.hpp"

namespace idem {
namespace {

prometheus::MetricFamily counters(std::string name, std::string help) {
  prometheus::MetricFamily family;
  family.name = std::move(name);
  family.help = std::move(help);
  family.type = prometheus::MetricType::Counter;
  return family;
}

void add(prometheus::MetricFamily& family, std::string_view event, std::uint64_t number) {
  prometheus::ClientMetric& metric = family.metric.emplace_back();
  metric.label.push_back({"event", std::string(event)});
  metric.counter.value = static_cast<double>(number);
}

}  // namespace

std::vector<prometheus::MetricFamily> Collector::Collect() const {
  std::vector<prometheus::MetricFamily> families;
  families.push_back(counters("idem_service_total", "What the verbs answered"));
  const Counters counted = service_.counters();
  for (std::size_t i = 0; i < counted.values.size(); ++i) {
    add(families.back(), to_string(static_cast<Counter>(i)), counted.values[i]);
  }
  if (sweeper_ == nullptr) return families;
  families.push_back(counters("idem_sweeper_total", "What the background sweeper did"));
  const SweeperCounts swept = sweeper_->counts();
  add(families.back(), "rounds", swept.rounds);
  add(families.back(), "steps", swept.steps);
  add(families.back(), "abandoned", swept.abandoned);
  add(families.back(), "expired", swept.expired);
  add(families.back(), "errors", swept.errors);
  return families;
}

std::string prometheus_text(const Collector& collector) {
  return prometheus::TextSerializer().Serialize(collector.Collect());
}

}  // namespace idem
