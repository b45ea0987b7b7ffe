// What a trial of the memory store is made of: a fresh store on a virtual clock, the history of the
// calls on it, and what must be true of both when its threads have ended.
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <set>
#include <string>
#include <string_view>

#include "../memory_test_support.hpp"
#include "epoch.hpp"
#include "idem/memory_store.hpp"
#include "schedule_explorer.hpp"
#include "store_history.hpp"

namespace idem::schedules {

using namespace std::chrono_literals;

// A key's hash is the number it begins with: "67-a" and "67-b" collide.
[[nodiscard]] std::uint64_t hash_in(KeyRef key);

class World {
 public:
  explicit World(std::uint64_t max_entries)
      : max_entries_(max_entries), store(options(max_entries)), history(store, clock) {}

  // Empty, or what does not hold: some order of single steps explains the answers and what is
  // there now; each record is counted once, leaves once, by removal or by a sweep, and its memory
  // comes home; the bound of entries has been given back.
  [[nodiscard]] std::string settle_accounts();

  // What `sweep` answered, added up.
  void sweep(std::size_t limit) { swept_ += store.sweep(limit).value(); }

 private:
  [[nodiscard]] MemoryOptions options(std::uint64_t max_entries);
  [[nodiscard]] std::string empty_it();

  const std::uint64_t max_entries_;  // 0: unbounded
  std::uint64_t swept_ = 0;

 public:
  VirtualClock clock;
  MemoryStore store;
  StoreHistory history;
  std::shared_ptr<void> beside;  // what else the trial needs; goes before the store
};

using Body = std::function<void(World&)>;

// One scenario over the memory store.
struct Scenario {
  // IDEM_NIGHTLY=1: one more. Under a sanitizer, where each trial costs ten times as much: one
  // less.
  std::size_t preemptions = 2;
  std::uint64_t max_entries = 4;
  Body setup = [](World&) {};  // in the exploring thread
  std::vector<Body> threads;
  // Which end this was; or, beginning with '!', what does not hold.
  std::function<std::string(World&)> outcome = [](World&) { return "ended"; };
};

// Every end the scenario can have was seen, and no other. Not asked of one repeated schedule, and
// not under a sanitizer: some ends need all preemptions.
void expect_outcomes(const Report& report, const std::set<std::string>& outcomes);

// Explores it, prints what was run, and fails the test if a schedule breaks. IDEM_SCHEDULE=...
// repeats one schedule and prints its steps.
Report explore_store(const Scenario& scenario);

}  // namespace idem::schedules
