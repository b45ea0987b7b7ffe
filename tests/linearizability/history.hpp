// What threads did to one key, and whether some order of single steps explains it.
//
// The search is Wing and Gong's, with Lowe's memory of (operations done, state) pairs: "Testing for
// Linearizability" (2017). A key's history is judged alone: keys share nothing.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "idem/time.hpp"

namespace idem::linearizability {

enum class Verb : std::uint8_t { claim, complete, fail, release, renew };

enum class Outcome : std::uint8_t {
  claimed,
  in_progress,
  replay,
  mismatch,
  failed,  // claim: the stored failure
  completed,
  conflict,
  lost,
  not_processing,
  gone,
  fail_recorded,
  released,
  renewed,
  unknown,  // may have taken effect, at any time from its call on
};

// One call and its answer. Owners, bodies and results are small numbers of the test's own; 0: none.
struct Operation {
  Verb verb = Verb::claim;
  std::uint32_t owner = 0;
  std::uint32_t body = 0;     // claim
  std::uint64_t fence = 0;    // of the token; claim: the one that was given
  std::uint32_t payload = 0;  // complete: the result; fail: 0 retryable, 1 final
  Outcome outcome = Outcome::unknown;
  std::uint32_t attempt = 0;  // claimed, in_progress
  std::uint32_t result = 0;   // replay, conflict, lost
  Time lease_until{};         // claimed, renewed
  // Events in the order they happened, over all threads.
  std::uint64_t invoked = 0;
  std::uint64_t returned = 0;
  // The clock, read before the call and after it: the store's reading lies between.
  Time clock_invoked{};
  Time clock_returned{};
};

[[nodiscard]] std::string describe(const Operation& operation);

inline constexpr std::size_t kOperationsMax = 64;  // of one key

// nullopt: linearizable. Else the operations, in the order they were called, for a person to read.
[[nodiscard]] std::optional<std::string> violation(const std::vector<Operation>& history);

}  // namespace idem::linearizability
