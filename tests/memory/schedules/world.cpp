#include "world.hpp"

#include <charconv>
#include <cstdio>
#include <cstdlib>

namespace idem::schedules {

using memory_test::claim;
using memory_test::name;
using memory_test::stands;
using memory_test::written;
using State = Answer::State;
using Verb = Call::Verb;

std::uint64_t hash_in(KeyRef key) {
  std::uint64_t hash = 0;
  std::from_chars(key.key.data(), key.key.data() + key.key.size(), hash);
  return hash;
}

MemoryOptions World::options(std::uint64_t max_entries) {
  MemoryOptions made;
  made.clock = &clock;
  made.shards = 1;
  made.max_entries = max_entries;
  made.hash = &hash_in;
  return made;
}

std::string World::settle_accounts() {
  std::uint64_t present = 0;
  for (const std::string& key : history.keys()) present += stands(history.load(key)) ? 1 : 0;
  if (std::string broken = history.violation(); !broken.empty()) return broken;
  const std::uint64_t listed = store.stats().value().records();
  const std::uint64_t counted = store.gauges().records;
  if (listed != present || counted != present)
    return std::to_string(present) + " records are there, " + std::to_string(listed) +
           " in the list, " + std::to_string(counted) + " counted";
  return empty_it();
}

std::string World::empty_it() {
  clock.advance(200h);
  for (std::uint64_t more = 1; more != 0; swept_ += more) more = store.sweep(1'000).value();
  const MemoryGauges left = store.gauges();
  if (left.records != 0 || left.limbo != 0 || store.stats().value().records() != 0)
    return std::to_string(left.records) + " records and " + std::to_string(left.limbo) +
           " cells in limbo are left behind when all is expired and swept";
  const std::uint64_t made = history.count(Verb::insert, State::written);
  const std::uint64_t removed = history.count(Verb::remove, State::written);
  if (made != removed + swept_)
    return std::to_string(made) + " were inserted, " + std::to_string(removed) + " removed, " +
           std::to_string(swept_) + " swept";
  for (std::uint64_t i = 0; max_entries_ != 0 && i <= max_entries_; ++i) {
    const Answer answer = memory_test::insert(store, name(std::to_string(i), i), claim(9));
    if (written(answer) != (i < max_entries_))
      return "with room for " + std::to_string(max_entries_) + " entries, insert " +
             std::to_string(i + 1) + (written(answer) ? " was written" : " was refused");
  }
  return {};
}

namespace {

Trial trial_of(const Scenario& scenario) {
  auto world = std::make_shared<World>(scenario.max_entries);
  memory::epoch::seat().writes = 0;  // what paces housekeeping goes on from trial to trial
  scenario.setup(*world);
  Trial trial;
  for (const Body& body : scenario.threads)
    trial.threads.emplace_back([world, &body] {
      memory::epoch::seat().writes = 0;  // as above
      body(*world);
    });
  trial.verdict = [world, &scenario] {
    Verdict verdict;
    verdict.outcome = scenario.outcome(*world);
    if (verdict.outcome.front() == '!')
      verdict.broken = verdict.outcome.substr(1);
    else
      verdict.broken = world->settle_accounts();
    return verdict;
  };
  return trial;
}

}  // namespace

void expect_outcomes(const Report& report, const std::set<std::string>& outcomes) {
  if (memory_test::kSanitized || report.total() <= 1) return;
  std::set<std::string> seen;
  for (const auto& [outcome, count] : report.outcomes) seen.insert(outcome);
  EXPECT_EQ(seen, outcomes);
}

Report explore_store(const Scenario& scenario) {
  Options options;
  options.preemptions = scenario.preemptions + (std::getenv("IDEM_NIGHTLY") != nullptr ? 1 : 0) -
                        (memory_test::kSanitized ? 1 : 0);
  if (const char* const one = std::getenv("IDEM_SCHEDULE")) options.replay = one;
  const Report report = explore(options, [&] { return trial_of(scenario); });
  EXPECT_EQ(report.broken, "") << describe(report);
  std::printf("%s\n%s", describe(report).c_str(),
              options.replay.empty() ? "" : report.trace.c_str());
  return report;
}

}  // namespace idem::schedules
