// Threads that use a service at random on a few keys, and the history of each key.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "history.hpp"
#include "idem/clock.hpp"
#include "idem/service.hpp"

namespace idem::linearizability {

struct Recording {
  std::vector<std::vector<Operation>> histories;  // one per key
  std::map<Outcome, int> mix;
  int takeovers = 0;
};

// `threads` threads, each with `calls` calls on keys that no run before has used. Time moves on a
// virtual clock, in steps of a third of the lease, now and then. Seeded, though the interleaving is
// the machine's.
[[nodiscard]] Recording record(IdempotencyService& service, VirtualClock& clock, std::uint64_t seed,
                               std::size_t threads, std::size_t calls);

}  // namespace idem::linearizability
