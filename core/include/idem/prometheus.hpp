// A service's counters for prometheus-cpp. Link idem::prometheus (built where prometheus-cpp is).
//
//   registry->...;  exposer.RegisterCollectable(std::make_shared<idem::Collector>(service));
//
//   idem_service_total{event="claimed_fresh"} 41      one per Counter
//   idem_sweeper_total{event="expired"} 7             rounds, steps, abandoned, expired, errors
//
// Keys, tenants and results are never labels.
#pragma once

#include <prometheus/collectable.h>

#include <string>
#include <vector>

#include "idem/service.hpp"
#include "idem/sweeper.hpp"

namespace idem {

// Thread safe. Borrows both; the service is asked at each collection, the store is not.
class Collector final : public prometheus::Collectable {
 public:
  explicit Collector(const IdempotencyService& service, const Sweeper* sweeper = nullptr)
      : service_(service), sweeper_(sweeper) {}

  [[nodiscard]] std::vector<prometheus::MetricFamily> Collect() const override;

 private:
  const IdempotencyService& service_;
  const Sweeper* const sweeper_;
};

// The same as text in Prometheus's format, for a server of your own.
[[nodiscard]] std::string prometheus_text(const Collector& collector);

}  // namespace idem
