// What a measurement found: the model that the table, the JSON and every later report are made
// from.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "idem/store.hpp"
#include "load/json.hpp"
#include "load/machine.hpp"
#include "load/round.hpp"
#include "load/statistics.hpp"

namespace idem::bench {

// What makes a row void.
struct Limits {
  double error_share = 0.01;              // of the attempted operations
  Micros wait = std::chrono::seconds(1);  // of any caller, for one call
};

// One store with one number of clients.
struct Row {
  std::string store;
  std::string url;  // without password; "" if private
  Durability durability = Durability::none;
  bool server = false;         // its work is done in another process
  bool multi_process = false;  // several processes can share it
  std::uint32_t clients = 1;
  std::string skipped;              // why nothing was measured; "" otherwise
  std::vector<double> rates;        // successful operations/s, a round each
  std::vector<double> attempts;     // attempted operations/s, a round each
  RoundResult total;                // of all rounds that count
  std::vector<std::string> faults;  // reasons why the row is void
  bool client_bound = false;
  double generator_share = 0;  // of the cores that the clients could use, by their threads
  bool reached = true;  // open loop: the offered rate; if not, latency grows with the run's length

  [[nodiscard]] bool is_void() const { return !faults.empty(); }
  [[nodiscard]] Summary rate() const { return summarize(rates); }
  // The longest that any caller waited for any call.
  [[nodiscard]] Nanos longest_wait() const;
};

struct Report {
  std::string version;
  std::string started;  // UTC, ISO 8601
  std::string command;
  Machine machine;
  Workload workload;
  std::uint32_t rounds = 0;
  Micros round_time{};
  Limits limits;
  std::string plan_hash;
  std::map<std::uint32_t, double> free_rates;  // clients -> operations/s with a store that is free
  std::vector<Row> rows;
  std::vector<std::string> warnings;
  bool interrupted = false;

  [[nodiscard]] bool any_void() const;
};

// Fills in faults and marks from the row's own figures. Pure. `free_rate`: of FreeStore at as many
// clients; 0 if unknown. `cores`: that the clients had.
void judge(Row& row, const Workload& workload, const Limits& limits, double free_rate,
           unsigned cores);

// Every number of every table, unrounded; durations in nanoseconds; null where there is none.
[[nodiscard]] Json to_json(const Report& report);

}  // namespace idem::bench
