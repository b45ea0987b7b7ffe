// One measurement: one table, one workload, a few rounds. Wins are counted and sums checked after
// each; a round that fails the check fails the process.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "peers/drive.hpp"

namespace idem::bench {

struct Racer {
  std::string name;
  bool batches_claims = false;
  bool batches_replays = false;
  std::function<Round(const Plan&, const Requests&)> run;
};

template <class Table>
[[nodiscard]] Racer racer_of(std::string name) {
  Racer racer;
  racer.name = std::move(name);
  racer.batches_claims = BatchesClaims<Table>;
  racer.batches_replays = BatchesReplays<Table>;
  racer.run = [](const Plan& plan, const Requests& requests) {
    return Drive<Table>(plan, requests).round();
  };
  return racer;
}

// Which are there is known when this program is configured.
[[nodiscard]] std::vector<Racer> racers();

Racer idem_racer();
Racer boost_flat_racer();
Racer boost_node_racer();
Racer std_racer();
Racer absl_racer();
Racer tbb_racer();
Racer urcu_racer();
Racer cuckoo_racer();

}  // namespace idem::bench
