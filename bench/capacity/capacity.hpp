// Capacity: a store's load curve from a tenth of what it can answer to more than that, its knee,
// and the highest rate that keeps a latency goal.
#pragma once

#include "capacity/curve.hpp"
#include "load/session.hpp"
#include "load/slo.hpp"

namespace idem::bench {

struct CapacityOptions {
  Workload workload;  // rate is set by the steps
  std::uint32_t clients = 16;
  std::uint32_t rounds = 3;  // of each step
  Micros step_time = std::chrono::milliseconds(500);
  std::vector<double> shares{0.1, 0.25, 0.5, 0.7, 0.8, 0.9, 1.0, 1.1};  // of the closed loop's rate
  std::uint32_t refinements =
      3;  // steps between the last rate within the goal and the first beyond
  std::optional<Slo> slo;
};

struct Curve {
  std::string store;
  Durability durability = Durability::none;
  std::string skipped;
  std::vector<double> closed;      // claims/s of the closed loop, a round each
  std::vector<CurvePoint> points;  // ascending
  Checks checks;
  std::vector<std::string> faults;
};

struct Capacity {
  CapacityOptions options;
  std::vector<Curve> curves;
  bool interrupted = false;
};

struct CapacityStep {
  std::uint32_t done = 0;
  std::uint32_t all = 0;
  std::string what;
  Micros left{};
};

[[nodiscard]] Micros planned_time(const CapacityOptions& options, std::size_t subjects);
[[nodiscard]] CapacityOptions fit_into(CapacityOptions options, std::size_t subjects,
                                       Micros budget);

[[nodiscard]] Capacity run_capacity(const CapacityOptions& options,
                                    const std::vector<Subject>& subjects, Clock& clock,
                                    const std::atomic<bool>& stop,
                                    const std::function<void(const CapacityStep&)>& on_step);

// workload, plan and curves; the header is the caller's.
[[nodiscard]] Json to_json(const Capacity& capacity);

}  // namespace idem::bench
