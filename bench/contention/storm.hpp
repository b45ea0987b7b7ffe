// The duplicate storm: so many clients claim one key at once; the one that wins works for a while,
// and the others go on asking as long as it does. What do they hear, and how soon?
#pragma once

#include <atomic>
#include <cstdint>
#include <string>
#include <string_view>

#include "contention/contender.hpp"
#include "load/histogram.hpp"
#include "load/requests.hpp"

namespace idem::bench {

struct StormTask {
  std::uint32_t clients = 8;
  std::uint32_t storms = 5;            // a key each
  Micros work{};                       // between the winner's claim and its complete
  const Requests* requests = nullptr;  // at least `storms`, scoped for this round
};

struct StormResult {
  std::uint64_t storms = 0;
  Histogram winner_claim;
  Histogram winner_total;  // from its claim to the answer of its complete: work and all
  // Of claims sent while the first still ran, whatever they heard.
  Histogram loser;
  std::uint64_t refusals = 0;  // of these: heard that somebody is at it
  std::uint64_t results = 0;   // of these: heard the first result, having waited for it
  std::uint64_t failed = 0;
  Nanos work_time = 0;  // while a first one was at work: what refusals per second count from
  Costs winner_costs;
  Costs loser_costs;
  Costs server;                  // what the server counted by itself, of all clients
  std::uint64_t won_twice = 0;   // storms with two winners
  std::uint64_t nobody_won = 0;  // storms without
  std::uint64_t not_taken = 0;   // completes of a winner that were refused
  // Of contenders that keep results: answers after the end that are not the first result.
  std::uint64_t wrong_replays = 0;
  std::uint64_t replays = 0;  // answers after the end, and those that had waited
  std::string trouble;

  void add(const StormResult& other);
  [[nodiscard]] std::uint64_t lock_waits() const;
  [[nodiscard]] std::uint64_t ids_burnt() const;  // of an AUTO_INCREMENT, that belong to no record
  [[nodiscard]] double refusals_per_second() const;
  [[nodiscard]] double trips_per_loser() const;
  [[nodiscard]] double trips_per_winner() const;
};

[[nodiscard]] result<StormResult> run_storm(const StormTask& task, const Contender& contender,
                                            Clock& clock, const std::atomic<bool>& stop);

// What duplicates meet, by the median of the losers against the length of the work.
enum class Manner : std::uint8_t {
  waits,    // at least as long as the work: they stand in line behind the business
  refused,  // less than a tenth of it: told at once
  between,
  unknown,  // there were no losers
};
[[nodiscard]] std::string_view to_string(Manner manner) noexcept;
[[nodiscard]] Manner manner_of(const Histogram& loser, Micros work);

}  // namespace idem::bench
