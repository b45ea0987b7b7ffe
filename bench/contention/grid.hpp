// Claims as fast as they are answered: so many clients over a choice of keys, nobody completes.
//
// A hot key is claimed 64 times and then gives way to a new one, so that winners and losers both
// show. Clients share one queue of claims: those who come together ask for the same key.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <string>
#include <vector>

#include "contention/contender.hpp"
#include "load/histogram.hpp"
#include "load/requests.hpp"
#include "load/workload.hpp"

namespace idem::bench {

inline constexpr std::uint32_t kClaimsOfHotKey = 64;

// The key of claim `i`; `keys` is unique or hot. Pure.
[[nodiscard]] std::uint32_t key_of_claim(const KeyChoice& keys, std::uint64_t i);

struct GridTask {
  KeyChoice keys;
  std::uint32_t clients = 1;
  Micros time{};                       // at most; when `requests` are used up it ends earlier
  const Requests* requests = nullptr;  // scoped for this round
};

struct GridResult {
  std::uint64_t won = 0;
  std::uint64_t running = 0;
  std::uint64_t done = 0;
  std::uint64_t failed = 0;
  Nanos elapsed = 0;
  Histogram winner;
  Histogram loser;
  Costs costs;
  Costs server;                  // what the server counted by itself, of all clients
  std::uint64_t won_twice = 0;   // keys
  std::uint64_t nobody_won = 0;  // keys that were refused to everybody
  std::string trouble;           // of one failed claim

  [[nodiscard]] std::uint64_t answered() const { return won + running + done; }
  [[nodiscard]] std::uint64_t lock_waits() const { return costs.lock_waits + server.lock_waits; }
  // Numbers of an AUTO_INCREMENT that belong to no record.
  [[nodiscard]] std::uint64_t ids_burnt() const { return server.ids - std::min(won, server.ids); }
  [[nodiscard]] double rate() const;  // answered claims per second
  void add(const GridResult& other);
};

// Enters `task.clients` askers and runs them, a thread each. The error of entering, if one fails.
[[nodiscard]] result<GridResult> run_grid(const GridTask& task, const Contender& contender,
                                          const std::atomic<bool>& stop);

}  // namespace idem::bench
