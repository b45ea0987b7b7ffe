#include <fmt/core.h>

#include <algorithm>

#include "load/report.hpp"
#include "load/units.hpp"

namespace idem::bench {
namespace {

// From here on a figure says as much about the clients as about the store.
constexpr double kBusyShare = 0.8;
// Open loop: less than this share of the offered rate is not the offered rate.
constexpr double kReachedShare = 0.97;

}  // namespace

Nanos Row::longest_wait() const {
  Nanos longest = 0;
  for (const Histogram& latency : total.uncorrected) longest = std::max(longest, latency.max());
  return longest;
}

bool Report::any_void() const {
  return std::any_of(rows.begin(), rows.end(), [](const Row& row) { return row.is_void(); });
}

void judge(Row& row, const Workload& workload, const Limits& limits, double free_rate,
           unsigned cores) {
  row.faults = row.total.checks.violations();
  if (row.total.attempted > 0) {
    const double failed = static_cast<double>(row.total.attempted - row.total.succeeded) /
                          static_cast<double>(row.total.attempted);
    if (failed > limits.error_share)
      row.faults.push_back(fmt::format("{} of the operations failed (limit {})", percent(failed),
                                       percent(limits.error_share)));
  }
  if (row.longest_wait() >= nanos(limits.wait))
    row.faults.push_back(fmt::format("stalled: a caller waited {} for one call (limit {})",
                                     duration_text(row.longest_wait()),
                                     duration_text(nanos(limits.wait))));
  const unsigned threads = workload.callers == Callers::async ? 1 : row.clients;
  const double usable =
      std::min<double>(threads, cores) * static_cast<double>(std::max<Nanos>(row.total.elapsed, 1));
  row.generator_share = static_cast<double>(row.total.cpu) / usable;
  row.reached = workload.rate <= 0 || row.rate().median >= kReachedShare * workload.rate;
  if (workload.rate > 0) {
    row.client_bound = !row.reached && row.generator_share > kBusyShare;
  } else if (row.server) {
    row.client_bound = row.generator_share > kBusyShare;
  } else {
    // An embedded store works in its clients' threads: their time is mostly its own.
    row.client_bound = free_rate > 0 && row.rate().median > kBusyShare * free_rate;
  }
}

}  // namespace idem::bench
