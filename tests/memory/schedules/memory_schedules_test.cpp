// The memory store under every schedule of its pause points with a few preemptions
// (schedule_explorer.hpp): what its files' heads prove, tried.
//
//   IDEM_NIGHTLY=1     one preemption more
//   IDEM_SCHEDULE=...  repeats the schedule that a failure printed; with --gtest_filter for its
//   test
//
// The time stands still in most trials: versions and times are then as close as they get.
#include <array>

#include "world.hpp"

namespace idem::schedules {
namespace {

using memory_test::absent;
using memory_test::claim;
using memory_test::owner;
using memory_test::stands;
using memory_test::success;
using memory_test::written;
using State = Answer::State;
using Verb = Call::Verb;

constexpr std::string_view kKey = "3-pay";
constexpr std::array<std::uint8_t, 2> kTwo{1, 2};  // owners

[[nodiscard]] std::uint64_t wins(const World& world, Verb verb) {
  return world.history.count(verb, State::written);
}

// A result that tells whose it is at every byte.
[[nodiscard]] std::string result_of(std::uint8_t by) {
  return std::string(64, static_cast<char>('a' + by));
}

[[nodiscard]] Draft finished(const Record& of, const std::string& result, Micros keep = 10min) {
  return success(of, result, keep);
}

// The owner of what a key holds now.
[[nodiscard]] std::string winner(World& world) {
  const Answer held = memory_test::load(world.store, Key(std::string(kKey)));
  return stands(held) ? "won by " + std::to_string(held.held.owner.bytes[0]) : "absent";
}

// Two claims of one key, and a third key in the same run.
TEST(MemorySchedulesTest, InsertAgainstInsertHasOneWinner) {
  Scenario scenario;
  scenario.preemptions = 3;
  for (const std::uint8_t by : kTwo)
    scenario.threads.emplace_back([by](World& world) {
      world.history.insert(kKey, claim(by));
      world.history.load(kKey);
    });
  scenario.outcome = [](World& world) {
    return wins(world, Verb::insert) == 1 ? winner(world) : "!not one winner";
  };
  expect_outcomes(explore_store(scenario), {"won by 1", "won by 2"});
}

TEST(MemorySchedulesTest, InsertAgainstInsertBesideACollidingKey) {
  Scenario scenario;
  for (const std::uint8_t by : kTwo)
    scenario.threads.emplace_back([by](World& world) { world.history.insert(kKey, claim(by)); });
  scenario.threads.emplace_back([](World& world) {
    const Answer held = world.history.insert("3-other", claim(3));
    world.history.remove("3-other", held.held.version);
  });
  scenario.outcome = [](World& world) {
    return wins(world, Verb::insert) == 2 ? winner(world) : "!not one winner of each key";
  };
  expect_outcomes(explore_store(scenario), {"won by 1", "won by 2"});
}

// A key is unique after its removal, and its versions go on growing while the clock stands still.
TEST(MemorySchedulesTest, InsertRemoveInsertHasOneWinnerEachTime) {
  Scenario scenario;
  scenario.preemptions = 3;
  for (const std::uint8_t by : kTwo)
    scenario.threads.emplace_back([by](World& world) {
      const Answer held = world.history.insert(kKey, claim(by));
      world.history.remove(kKey, held.held.version);
      world.history.insert(kKey, claim(static_cast<std::uint8_t>(by + 2)));
    });
  scenario.outcome = [](World& world) {
    return std::to_string(wins(world, Verb::insert)) + " inserted, " +
           std::to_string(wins(world, Verb::remove)) + " removed";
  };
  expect_outcomes(explore_store(scenario), {"2 inserted, 1 removed", "3 inserted, 2 removed"});
}

TEST(MemorySchedulesTest, TwoInsertsAgainstARemoval) {
  Scenario scenario;
  scenario.setup = [](World& world) { world.history.insert(kKey, claim(7)); };
  scenario.threads.emplace_back([](World& world) {
    const Answer held = world.history.load(kKey);
    world.history.remove(kKey, held.held.version);
  });
  for (const std::uint8_t by : kTwo)
    scenario.threads.emplace_back([by](World& world) {
      if (written(world.history.insert(kKey, claim(by)))) return;
      world.history.insert(kKey, claim(by));
    });
  scenario.outcome = [](World& world) {
    return wins(world, Verb::insert) <= 2 ? winner(world) : "!two winners after one removal";
  };
  expect_outcomes(explore_store(scenario), {"absent", "won by 1", "won by 2"});
}

// The sweeper is never ahead of a claim that made an expired record live again.
TEST(MemorySchedulesTest, ReplaceAgainstEviction) {
  Scenario scenario;
  scenario.preemptions = 3;
  scenario.setup = [](World& world) {
    world.history.insert(kKey, claim(7, 1ms, 1ms));
    world.clock.advance(1ms);
  };
  scenario.threads.emplace_back([](World& world) { world.sweep(10); });
  scenario.threads.emplace_back([](World& world) {
    const Answer held = world.history.load(kKey);
    const Answer again = world.history.replace(kKey, held.held.version, claim(1));
    if (written(again)) world.history.replace(kKey, again.held.version, finished(again.held, "R"));
  });
  scenario.outcome = [](World& world) {
    const std::uint64_t done = wins(world, Verb::replace);
    return done == 1 ? std::string("!the claim was lost before it was completed")
                     : std::to_string(done) + " replaced, " + winner(world);
  };
  expect_outcomes(explore_store(scenario), {"0 replaced, absent", "2 replaced, won by 1"});
}

// Claims of an expired key while two threads sweep it away.
TEST(MemorySchedulesTest, EvictionAgainstClaimsOfTheSameKey) {
  Scenario scenario;
  scenario.setup = [](World& world) {
    world.history.insert(kKey, claim(7, 1ms, 1ms));
    world.clock.advance(1ms);
  };
  scenario.threads.emplace_back([](World& world) { world.sweep(10); });
  for (const std::uint8_t by : kTwo)
    scenario.threads.emplace_back([by](World& world) {
      const Answer held = world.history.insert(kKey, claim(by));
      if (written(held) || !held.held.expired(held.now)) return;
      if (absent(world.history.replace(kKey, held.held.version, claim(by))))
        world.history.insert(kKey, claim(by));
    });
  scenario.outcome = [](World& world) {
    const std::uint64_t claims = wins(world, Verb::insert) - 1 + wins(world, Verb::replace);
    return claims == 1 ? winner(world) : "!" + std::to_string(claims) + " claims of one key";
  };
  expect_outcomes(explore_store(scenario), {"won by 1", "won by 2"});
}

// A lease is over: its owner completes while two others take over. One of three writes.
TEST(MemorySchedulesTest, TakeoversAgainstTheLateOwner) {
  Scenario scenario;
  scenario.setup = [](World& world) {
    world.history.insert(kKey, claim(7, 1ms, 1min));
    world.clock.advance(1ms);
  };
  for (const std::uint8_t by : kTwo)
    scenario.threads.emplace_back([by](World& world) {
      const Answer held = world.history.insert(kKey, claim(by));
      if (held.held.status != Status::processing || held.now < held.held.lease_until) return;
      const Answer mine = world.history.replace(kKey, held.held.version, claim(by));
      if (!written(mine)) return;
      const std::string result = result_of(by);
      world.history.replace(kKey, mine.held.version, finished(mine.held, result));
    });
  scenario.threads.emplace_back([](World& world) {
    Answer mine = world.history.load(kKey);
    if (mine.held.owner != owner(7)) return;
    const std::string result = result_of(7);
    world.history.replace(kKey, mine.held.version, finished(mine.held, result));
  });
  scenario.outcome = [](World& world) {
    const Answer held = memory_test::load(world.store, Key(std::string(kKey)));
    const std::uint8_t by = held.held.owner.bytes[0];
    const std::uint64_t writes = by == 7 ? 1 : 2;  // it completed; or: taken over and completed
    if (held.held.status != Status::success || held.held.result != result_of(by))
      return std::string("!the winner's result is not what is held");
    if (wins(world, Verb::replace) != writes) return std::string("!a stale owner wrote");
    return winner(world);
  };
  expect_outcomes(explore_store(scenario), {"won by 1", "won by 2", "won by 7"});
}

// A claim of the first thread's makes 16 more buckets out of the first 64, and the sixth one after
// it links the fourth of them: it moves "67-there" from bucket 3 to bucket 67. Meanwhile the others
// use it and its neighbour.
Scenario growing(std::size_t preemptions, std::vector<Body> others) {
  static constexpr std::size_t kTold = 64;  // records that the shard has been told of
  static constexpr std::size_t kUntold = 15;
  static constexpr std::size_t kBetween = 5;
  Scenario scenario;
  scenario.preemptions = preemptions;
  scenario.max_entries = 0;
  scenario.setup = [](World& world) {
    world.history.insert("67-there", claim(7));
    for (std::size_t i = 1; i < kTold; ++i)
      world.history.insert(std::to_string(i % 61) + "-" + std::to_string(i), claim(7));
  };
  scenario.threads = std::move(others);
  scenario.threads.emplace(scenario.threads.begin(), [](World& world) {
    unobserved([&world] {
      for (std::size_t i = 0; i < kUntold; ++i)
        world.history.insert("99-" + std::to_string(i), claim(1));
    });
    world.history.insert("5-grows", claim(1));
    unobserved([&world] {
      for (std::size_t i = 0; i < kBetween; ++i)
        world.history.insert("100-" + std::to_string(i), claim(1));
    });
    world.history.insert("5-links", claim(1));
  });
  scenario.outcome = [](World& world) {
    const std::uint64_t news = wins(world, Verb::insert) - kTold - kUntold - kBetween - 2;
    return std::to_string(news) + " new, " + std::to_string(wins(world, Verb::replace)) +
           " replaced";
  };
  return scenario;
}

void insert_new(World& world) { world.history.insert("67-new", claim(2)); }
void replace_there(World& world) {
  const Answer held = world.history.load("67-there");
  world.history.replace("67-there", held.held.version, finished(held.held, "R"));
}

TEST(MemorySchedulesTest, GrowthAgainstInsert) {
  const Report report = explore_store(growing(3, {insert_new}));
  expect_outcomes(report, {"1 new, 0 replaced"});
  EXPECT_EQ(report.points.count("memory.grow.linked"), 1U);
}

TEST(MemorySchedulesTest, GrowthAgainstReplace) {
  expect_outcomes(explore_store(growing(3, {replace_there})), {"0 new, 1 replaced"});
}

TEST(MemorySchedulesTest, GrowthAgainstInsertAndReplace) {
  const auto replace_and_insert = [](World& world) {
    replace_there(world);
    world.history.insert("67-new", claim(3));
  };
  expect_outcomes(explore_store(growing(2, {insert_new, replace_and_insert})),
                  {"1 new, 1 replaced"});
}

// A thread takes cells of one size sixteen at a time: this many records more of that size use them
// up, and the next one is in a cell that was freed, or in a new run.
void use_up(World& world, int records, const std::string& result) {
  Draft draft = claim(8);
  draft.result = result;
  for (int i = 0; i < records; ++i) world.history.insert("1-" + std::to_string(i), draft);
}

void make_record(World& world) {
  unobserved([&world] {
    const Answer made = world.history.insert(kKey, claim(7));
    world.history.replace(kKey, made.held.version, finished(made.held, result_of(1)));
  });
}
void replace_record(World& world) {
  const Answer held = memory_test::load(world.store, Key(std::string(kKey)));
  world.history.replace(kKey, held.held.version, finished(held.held, result_of(2)));
  unobserved([&world] { use_up(world, 14, result_of(3)); });
}
void use_freed_cell(World& world) {
  const std::string result = result_of(4);
  Draft draft = claim(9);
  draft.result = result;
  world.history.insert("9-new", draft);
}

[[nodiscard]] std::string what_was_read(World& world) {
  return world.history.count(Verb::load, State::stands) == 1 ? "read" : "absent";
}

// A reader's record is not written again under its eyes.
TEST(MemorySchedulesTest, ReclaimAgainstRead) {
  Scenario scenario;
  scenario.preemptions = 3;
  scenario.max_entries = 20;
  scenario.threads.emplace_back([](World& world) { world.history.load(kKey); });
  scenario.threads.emplace_back([](World& world) {
    make_record(world);
    replace_record(world);
    world.sweep(10);  // as far as the reader lets it
    use_freed_cell(world);
  });
  scenario.outcome = what_was_read;
  const Report report = explore_store(scenario);
  expect_outcomes(report, {"absent", "read"});
  EXPECT_EQ(report.points.count("memory.reclaim.detached"), 1U);
}

// The same with the one who reclaims apart from the one who retires.
TEST(MemorySchedulesTest, ReclaimByAThirdAgainstRead) {
  Scenario scenario;
  scenario.max_entries = 20;
  scenario.threads.emplace_back([](World& world) { world.history.load(kKey); });
  scenario.threads.emplace_back([](World& world) {
    make_record(world);
    replace_record(world);
    use_freed_cell(world);
  });
  scenario.threads.emplace_back([](World& world) { world.sweep(10); });
  scenario.outcome = what_was_read;
  expect_outcomes(explore_store(scenario), {"absent", "read"});
}

// Nobody is missed: a waiter sees the result when it looks, or is told.
TEST(MemorySchedulesTest, WatchAgainstComplete) {
  Scenario scenario;
  scenario.preemptions = 3;
  struct Waiter {
    bool told = false;
    bool seen = false;
  };
  auto waiter = std::make_shared<Waiter>();
  scenario.setup = [waiter](World& world) {
    *waiter = {};
    world.history.insert(kKey, claim(7));
  };
  scenario.threads.emplace_back([waiter](World& world) {
    world.store.watch(Key(std::string(kKey)), [waiter] { waiter->told = true; });
    waiter->seen = world.history.load(kKey).held.status == Status::success;
  });
  scenario.threads.emplace_back([](World& world) {
    const Answer held = world.history.load(kKey);
    world.history.replace(kKey, held.held.version, finished(held.held, "R"));
  });
  scenario.outcome = [waiter](World&) {
    if (!waiter->told && !waiter->seen) return "!the waiter was missed";
    return !waiter->told ? "seen" : waiter->seen ? "seen and told" : "told";
  };
  expect_outcomes(explore_store(scenario), {"seen", "told", "seen and told"});
}

// With room for one, one of two keys is written; what is expired makes room for exactly one.
TEST(MemorySchedulesTest, TheBoundOfEntriesIsExact) {
  Scenario scenario;
  scenario.preemptions = 3;
  scenario.max_entries = 1;
  scenario.setup = [](World& world) {
    world.history.insert(kKey, claim(7, 1ms, 1ms));
    world.clock.advance(1ms);
  };
  for (const std::uint8_t by : kTwo)
    scenario.threads.emplace_back(
        [by](World& world) { world.history.insert(by == 1 ? "5-one" : "6-two", claim(by)); });
  scenario.outcome = [](World& world) {
    return std::to_string(wins(world, Verb::insert) - 1) + " written";
  };
  expect_outcomes(explore_store(scenario), {"1 written"});
}

// A sweep that raises a chunk's bound does not hide a record that is made meanwhile.
TEST(MemorySchedulesTest, NothingDueIsMissedByASweep) {
  Scenario scenario;
  scenario.preemptions = 3;
  scenario.max_entries = 20;
  scenario.threads.emplace_back([](World& world) { world.sweep(10); });
  scenario.threads.emplace_back([](World& world) {
    unobserved([&world] {
      world.history.insert("4-old", claim(7, 1ms, 1ms));
      use_up(world, 15, "");
      world.clock.advance(1ms);
    });
    world.history.insert(kKey, claim(1, 1ms, 5ms));
  });
  scenario.outcome = [](World& world) {
    world.clock.advance(5ms);
    world.sweep(10);
    return absent(memory_test::load(world.store, Key(std::string(kKey)))) ? "swept" : "!missed";
  };
  expect_outcomes(explore_store(scenario), {"swept"});
}

}  // namespace
}  // namespace idem::schedules
