// Threaded histories over every store are linearizable, key by key; over two broken ones they are
// not. IDEM_NIGHTLY=1: twenty times as many.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <iterator>

#include "../conformance/broken_stores.hpp"
#include "idem/testing/describe.hpp"
#include "recorder.hpp"
#include "subjects.hpp"

namespace idem::linearizability {
namespace {

#if defined(__SANITIZE_THREAD__)
constexpr std::uint64_t kRunsByDefault = 15;
#else
constexpr std::uint64_t kRunsByDefault = 125;
#endif
// Each run makes a history of each of three keys.
std::uint64_t runs_wanted() {
  return std::getenv("IDEM_NIGHTLY") != nullptr ? 20 * kRunsByDefault : kRunsByDefault;
}
constexpr std::size_t kThreads = 6;
constexpr std::size_t kCalls = 20;

// A tier's front refuses a claim while another one of the same request is on its way to the back,
// which may yet refuse that one: its InProgress says "ask again", not what the back holds
// (SEMANTICS: the back is not asked). What is granted, replayed and lost is judged as everywhere.
std::vector<Operation> judged(const std::vector<Operation>& history, bool tiered) {
  std::vector<Operation> kept;
  for (const Operation& one : history) {
    if (!tiered || one.outcome != Outcome::in_progress) kept.push_back(one);
  }
  return kept;
}

constexpr Outcome kOutcomes[] = {Outcome::in_progress, Outcome::replay, Outcome::mismatch,
                                 Outcome::lost,        Outcome::gone,   Outcome::renewed};

struct Seen {
  Recording total;
  std::size_t histories = 0;  // judged
  std::size_t in_doubt = 0;   // runs left out
  std::uint64_t runs = 0;

  bool every_outcome() {
    return std::all_of(std::begin(kOutcomes), std::end(kOutcomes),
                       [&](Outcome outcome) { return total.mix[outcome] > 0; });
  }
};

// Which outcomes come depends on who runs when: at most so many times the runs wanted until each of
// them was there.
constexpr std::uint64_t kPatience = 10;

// The first violation in `runs` runs or, if an outcome is missing by then, in a few more; nullopt:
// none. Adds up what was seen.
std::optional<std::string> first_violation(StorePtr store, VirtualClock& clock, std::uint64_t runs,
                                           Seen& seen) {
  ServiceOptions options;
  options.clock = &clock;
  const bool tiered = store->capabilities().backend.starts_with("tiered");
  IdempotencyService service(std::move(store), options);
  for (std::uint64_t seed = 1; seed <= runs || (seed <= kPatience * runs && !seen.every_outcome());
       ++seed) {
    seen.runs = seed;
    const std::uint64_t repeated = service.counters()[Counter::unknown_retried];
    const Recording run = record(service, clock, seed, kThreads, kCalls);
    // A claim that was applied, answered `unknown` and repeated may have two effects; the checker
    // knows calls of one. Only a server with deadlines of its own gets here.
    if (service.counters()[Counter::unknown_retried] != repeated) {
      ++seen.in_doubt;
      continue;
    }
    for (const auto& [outcome, count] : run.mix) seen.total.mix[outcome] += count;
    seen.total.takeovers += run.takeovers;
    for (const auto& history : run.histories) {
      if (history.size() > kOperationsMax) continue;
      ++seen.histories;
      if (auto found = violation(judged(history, tiered)))
        return "seed " + std::to_string(seed) + ": " + *found;
    }
  }
  return std::nullopt;
}

class Histories : public ::testing::TestWithParam<conformance::Subject> {};

TEST_P(Histories, AreLinearizable) {
  VirtualClock clock;
  auto fixture = GetParam().make(clock);
  ASSERT_TRUE(fixture.has_value()) << testing::describe(fixture.error());
  const std::uint64_t runs = runs_wanted();
  Seen seen;
  const auto found = first_violation(fixture->store, clock, runs, seen);
  EXPECT_FALSE(found.has_value()) << *found;
  EXPECT_GT(seen.histories, seen.runs)
      << "nearly all keys within what the checker takes, and no doubts";
  EXPECT_GT(seen.total.takeovers, 0);
  for (const Outcome outcome : kOutcomes) {
    EXPECT_GT(seen.total.mix[outcome], 0)
        << "outcome " << static_cast<int>(outcome) << " never came";
  }
  // A server may miss a deadline when another thread moves the clock past it.
  if (!fixture->store->capabilities().server_clock) {
    EXPECT_EQ(seen.total.mix[Outcome::unknown], 0);
    EXPECT_EQ(seen.in_doubt, 0U);
  }
  std::printf("%s: %zu histories, %d claims after the first, %zu of %zu runs in doubt, %s\n",
              GetParam().name.c_str(), seen.histories, seen.total.takeovers, seen.in_doubt,
              static_cast<std::size_t>(seen.runs), found ? "a violation" : "0 violations");
}

INSTANTIATE_TEST_SUITE_P(All, Histories, ::testing::ValuesIn(subjects()),
                         [](const auto& one) { return one.param.name; });

// A checker that finds nothing may be asleep.
TEST(Histories, OfBrokenStoresAreNot) {
  for (const auto& broken : conformance::broken_stores()) {
    if (broken.name != "non_atomic_insert" && broken.name != "no_fence_check") continue;
    VirtualClock clock;
    Seen seen;
    const auto found = first_violation(broken.make(clock), clock, 2000, seen);
    EXPECT_TRUE(found.has_value()) << broken.fault << ": not seen in " << seen.histories;
    std::printf("%s: caught after %zu histories\n", broken.name.c_str(), seen.histories);
  }
}

}  // namespace
}  // namespace idem::linearizability
