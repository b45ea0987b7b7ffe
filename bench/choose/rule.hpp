// The rule by which a store is recommended: the simplest one that meets the needs with twice the
// rate to spare. Never the fastest for being fastest, never one tier ranked against another. Pure.
//
//   1 A store falls that broke a promise, failed too often, keeps too little, cannot be shared as
//     widely as needed, or misses the latency goal at the rate.
//   2 Those left are ordered by what they cost to run: embedded, a server that is there already, a
//     new server, two stores.
//   3 The first with a capacity of at least twice the rate is it. Capacity is the low end of the
//     interval, where there is one. Without a rate: half of the best one's capacity.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "idem/store.hpp"
#include "load/slo.hpp"
#include "load/statistics.hpp"

namespace idem::bench {

inline constexpr double kHeadroom = 2;

struct Needs {
  double rate = 0;  // claims/s; 0: not said
  std::uint32_t clients = 16;
  std::uint32_t processes = 1;
  std::uint32_t hosts = 1;
  double duplicates = 0.05;
  std::uint32_t payload = 256;
  Durability durability = Durability::process;  // at least
  std::optional<Slo> slo;
  double max_errors = 0.01;
};

// In the order of what it costs to run.
enum class Upkeep : std::uint8_t { embedded, server_given, server_new, two_stores };
[[nodiscard]] std::string_view to_string(Upkeep upkeep) noexcept;

// What was found about a store.
struct Candidate {
  std::string store;
  Upkeep upkeep = Upkeep::embedded;
  Durability durability = Durability::none;
  bool multi_process = false;
  bool multi_host = false;
  double capacity = 0;  // claims/s, median
  std::optional<Interval> interval;
  std::vector<std::string> broken;  // promises: the faults of its rows
  double error_share = 0;
  std::optional<bool> rate_reached;  // at Needs::rate
  std::optional<Nanos> latency;      // at Needs::rate, the goal's quantile (p99 without a goal)
  std::string skipped;               // why nothing was measured
  // The highest tier that it could be set to, if it is ours to set; it was measured at
  // `durability`.
  std::optional<Durability> settable_to;

  // What can be counted on.
  [[nodiscard]] double floor() const { return interval ? interval->low : capacity; }
};

// Another answer, and what would bring it about.
struct Flip {
  std::string change;  // "rate above 4.9k/s"
  std::string store;   // "" if none of them would do
  // False: some store can be set to it, but was not measured so: nobody knows the answer.
  bool measured = true;
};

struct Decision {
  std::vector<std::vector<std::string>>
      against;  // for each candidate: why it falls; empty: it fits
  std::optional<std::size_t> chosen;
  std::optional<std::size_t> runner_up;  // the next that fits
  std::optional<std::size_t>
      nearest;        // none chosen: the one that only lacks capacity, the most able
  double needed = 0;  // capacity that was asked of them
};

[[nodiscard]] Decision decide(const Needs& needs, const std::vector<Candidate>& candidates);

// Single changes of the needs that change the answer; most telling first.
[[nodiscard]] std::vector<Flip> flips(const Needs& needs, const std::vector<Candidate>& candidates);

}  // namespace idem::bench
