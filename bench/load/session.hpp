// A measurement: every store, every number of clients, in interleaved rounds (A B A B, not A A B B:
// what the machine does meanwhile hits all alike), the first ones for warming up.
#pragma once

#include <atomic>
#include <functional>
#include <string>
#include <vector>

#include "idem/backend.hpp"
#include "load/report.hpp"

namespace idem::bench {

// A store to be measured.
struct Subject {
  std::string name;  // "sqlite", "memory:capped": unique within a session
  // Empty and private, made anew for every round; or the same store each time, from which the
  // round's records are taken away afterwards.
  std::function<result<Fixture>()> open;
  bool is_private = true;
};

struct SessionOptions {
  Workload workload;
  std::vector<std::uint32_t> clients{1, 8};
  std::uint32_t rounds = 7;  // that count; one more warms up
  Micros round_time = std::chrono::milliseconds(500);
  Limits limits;
};

// What is said while it runs; all in the calling thread.
struct Progress {
  std::uint32_t done = 0;  // rounds of one store, warm-up among them
  std::uint32_t all = 0;
  std::string subject;
  std::uint32_t clients = 0;
  Micros left{};  // estimated
};
using OnProgress = std::function<void(const Progress&)>;

// At most so long by plan: what is told before the start.
[[nodiscard]] Micros planned_time(const SessionOptions& options, std::size_t subjects);

// The options with round_time such that the session takes about `budget`; at most the time given.
[[nodiscard]] SessionOptions fit_into(SessionOptions options, std::size_t subjects, Micros budget);

// Fills report.rows, .free_rates, .plan_hash and .interrupted. A subject that cannot be opened gets
// a skipped row that says why. `stop` ends it early: complete rounds count, the broken one does
// not.
void run_session(const SessionOptions& options, const std::vector<Subject>& subjects, Clock& clock,
                 const std::atomic<bool>& stop, const OnProgress& progress, Report& report);

}  // namespace idem::bench
