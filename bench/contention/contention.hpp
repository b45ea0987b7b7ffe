// A contention: every contender over clients and keys, and through the duplicate storm, in
// interleaved rounds, beside the bare protocols it is built on.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "contention/grid.hpp"
#include "contention/storm.hpp"
#include "load/json.hpp"

namespace idem::bench {

struct ContentionOptions {
  std::vector<std::uint32_t> clients{1, 4, 16};
  std::vector<KeyChoice> keys{{KeyKind::hot, 1}, {KeyKind::hot, 64}, {KeyKind::unique}};
  std::uint32_t rounds = 6;  // that count; one more warms up
  Micros round_time = std::chrono::milliseconds(300);
  std::uint32_t claims = 100'000;   // in a round at most
  std::uint32_t storm_clients = 8;  // the first one among them
  std::uint32_t storms = 3;         // in a round
  Micros work = std::chrono::milliseconds(50);
  std::uint64_t seed = 1;
};

struct GridRow {
  std::size_t contender = 0;
  KeyChoice keys;
  std::uint32_t clients = 1;
  std::vector<double> rates;  // answered claims/s, a round each
  GridResult total;
  std::vector<std::string> faults;
};

struct StormRow {
  std::size_t contender = 0;
  StormResult total;
  std::vector<std::string> faults;
};

struct Contention {
  ContentionOptions options;
  std::vector<Contender> contenders;
  std::vector<GridRow> grid;
  std::vector<StormRow> storm;
  bool interrupted = false;

  [[nodiscard]] bool any_void() const;
  [[nodiscard]] bool any_measured() const;
};

struct ContentionStep {
  std::uint32_t done = 0;
  std::uint32_t all = 0;
  std::string what;  // "redis, hot:1, 16 clients"
  Micros left{};
};

// At most so long by plan.
[[nodiscard]] Micros planned_time(const ContentionOptions& options, std::size_t contenders);
// With round_time, and if need be fewer storms and rounds, so that it takes about `budget`.
[[nodiscard]] ContentionOptions fit_into(ContentionOptions options, std::size_t contenders,
                                         Micros budget);

// What was done before `stop` counts, the round it broke does not.
[[nodiscard]] Contention run_contention(const ContentionOptions& options,
                                        std::vector<Contender> contenders, Clock& clock,
                                        const std::atomic<bool>& stop,
                                        const std::function<void(const ContentionStep&)>& on_step);

// "kind": "contention", its options, contenders, grid and storm; the header is the caller's.
[[nodiscard]] Json to_json(const Contention& contention);

}  // namespace idem::bench
