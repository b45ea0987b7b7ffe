// The explorer finds what it must find, and runs exactly the schedules there are.
#include "schedule_explorer.hpp"

#include <gtest/gtest.h>

#include <memory>

#include "idem/pause_point.hpp"

namespace idem::schedules {
namespace {

Report explore_up_to(std::size_t preemptions, const std::function<Trial()>& make) {
  Options options;
  options.preemptions = preemptions;
  return explore(options, make);
}

// `threads` threads that pass three points each and share nothing.
Trial strangers(std::size_t threads) {
  Trial trial;
  trial.threads.assign(threads, [] {
    IDEM_PAUSE_POINT("one");
    IDEM_PAUSE_POINT("two");
    IDEM_PAUSE_POINT("three");
  });
  trial.verdict = [] { return Verdict{}; };
  return trial;
}

// Two threads of n points. No preemption: who is first, 2. One: where who was first is stopped, 2n.
// Two: where each is stopped, 2n^2. Three: the first is stopped at two points, the other at one.
TEST(ScheduleExplorerTest, CountsAreThoseByHandForTwoThreads) {
  const Report report = explore_up_to(3, [] { return strangers(2); });
  EXPECT_EQ(report.broken, "");
  EXPECT_EQ(report.schedules, (std::vector<std::uint64_t>{2, 2 * 3, 2 * 3 * 3, 2 * 3 * 3}));
  EXPECT_EQ(report.longest, 8U);
  EXPECT_EQ(report.points, (std::set<std::string>{"one", "two", "three"}));
}

// All interleavings of twice four steps: 8 over 4.
TEST(ScheduleExplorerTest, WithoutABoundAllInterleavingsAreRun) {
  EXPECT_EQ(explore_up_to(6, [] { return strangers(2); }).total(), 70U);
}

// Three threads. No preemption: 3!. One: the stopped thread (3) at one of n points; its halves and
// the two others in an order in which the first half comes before the second, and not next to it:
// 12 - 6.
TEST(ScheduleExplorerTest, CountsAreThoseByHandForThreeThreads) {
  const Report report = explore_up_to(1, [] { return strangers(3); });
  EXPECT_EQ(report.schedules, (std::vector<std::uint64_t>{6, 3 * 3 * 6}));
}

// Adds one, twice, in so many threads; `step` is how.
Trial counting(const std::function<void(int&)>& step) {
  auto count = std::make_shared<int>(0);
  Trial trial;
  trial.threads.assign(2, [count, step] {
    step(*count);
    step(*count);
  });
  trial.verdict = [count] {
    return *count == 4 ? Verdict{"", "counted"} : Verdict{"counted " + std::to_string(*count), ""};
  };
  return trial;
}

TEST(ScheduleExplorerTest, ACounterOfOneStepHoldsInEverySchedule) {
  const Report report = explore_up_to(2, [] {
    return counting([](int& count) {
      IDEM_PAUSE_POINT("before");
      ++count;
    });
  });
  EXPECT_EQ(report.broken, "");
  EXPECT_EQ(report.total(), 2U + 2 * 2 + 2 * 2 * 2);
  EXPECT_EQ(report.outcomes.at("counted"), report.total());
}

// The lost update of a counter that is read, and written later.
TEST(ScheduleExplorerTest, FindsALostUpdateAndRepeatsItFromItsChoices) {
  const auto make = [] {
    return counting([](int& count) {
      const int seen = count;
      IDEM_PAUSE_POINT("between");
      count = seen + 1;
    });
  };
  const Report report = explore_up_to(2, make);
  EXPECT_EQ(report.broken, "counted 2");
  EXPECT_EQ(report.schedules, (std::vector<std::uint64_t>{2, 1, 0}));  // the fewest preemptions
  EXPECT_EQ(report.schedule, "0x2,1x3,0x1");
  const std::string told = describe(report);
  EXPECT_NE(told.find("IDEM_SCHEDULE=0x2,1x3,0x1"), std::string::npos) << told;
  EXPECT_NE(told.find("thread 0 to between, 2 times\n  thread 1 to between"), std::string::npos)
      << told;

  Options again;
  again.replay = report.schedule;
  const Report replayed = explore(again, make);
  EXPECT_EQ(replayed.broken, report.broken);
  EXPECT_EQ(replayed.trace, report.trace);
  EXPECT_EQ(replayed.total(), 1U);
}

// An insert in two steps, check and put, has two winners.
TEST(ScheduleExplorerTest, FindsTheTwoWinnersOfCheckThenPut) {
  const Report report = explore_up_to(2, [] {
    struct Table {
      std::map<std::string, int> records;
      int winners = 0;
    };
    auto table = std::make_shared<Table>();
    Trial trial;
    for (int owner = 1; owner <= 2; ++owner)
      trial.threads.emplace_back([table, owner] {
        const bool absent = table->records.count("pay-42") == 0;
        IDEM_PAUSE_POINT("checked");
        if (!absent) return;
        table->records["pay-42"] = owner;
        ++table->winners;
      });
    trial.verdict = [table] {
      return Verdict{table->winners == 1 ? "" : std::to_string(table->winners) + " winners", ""};
    };
    return trial;
  });
  EXPECT_EQ(report.broken, "2 winners");
  EXPECT_EQ(report.schedule, "0x1,1x2,0x1");
}

TEST(ScheduleExplorerTest, UnobservedWorkIsPartOfAStep) {
  const Report report = explore_up_to(2, [] {
    return counting([](int& count) {
      unobserved([&count] {
        const int seen = count;
        IDEM_PAUSE_POINT("between");
        count = seen + 1;
      });
      IDEM_PAUSE_POINT("behind");
    });
  });
  EXPECT_EQ(report.broken, "");
  EXPECT_EQ(report.points, (std::set<std::string>{"behind"}));
}

// What takes two preemptions is not found with one.
TEST(ScheduleExplorerTest, TheBoundIsTheNumberOfPreemptions) {
  const auto make = [] {
    struct State {
      int word = 0;
      bool fooled = false;
    };
    auto state = std::make_shared<State>();
    Trial trial;
    trial.threads.emplace_back([state] {
      state->word = 1;
      IDEM_PAUSE_POINT("one");
      state->word = 0;
    });
    trial.threads.emplace_back([state] {
      if (state->word != 1) return;
      IDEM_PAUSE_POINT("seen");
      state->fooled = state->word == 0;
    });
    trial.verdict = [state] { return Verdict{state->fooled ? "fooled" : "", ""}; };
    return trial;
  };
  EXPECT_EQ(explore_up_to(1, make).broken, "");
  EXPECT_EQ(explore_up_to(2, make).broken, "fooled");
}

// A thread that waits for a stopped one is no progress: told, and not waited for.
TEST(ScheduleExplorerTest, ALoopThatWaitsForAStoppedThreadIsReported) {
  const Report report = explore_up_to(1, [] {
    auto locked = std::make_shared<bool>(false);
    Trial trial;
    trial.threads.assign(2, [locked] {
      while (*locked) IDEM_PAUSE_POINT("spin");
      *locked = true;
      IDEM_PAUSE_POINT("locked");
      *locked = false;
    });
    trial.verdict = [] { return Verdict{}; };
    return trial;
  });
  EXPECT_NE(report.broken.find("thread 1 passed more than 10000 points"), std::string::npos)
      << report.broken;
  EXPECT_EQ(report.schedules[0], 2U);
}

// Death leaves the schedule behind.
TEST(ScheduleExplorerDeathTest, ACrashTellsItsSchedule) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_DEATH(static_cast<void>(explore_up_to(1,
                                               [] {
                                                 auto first = std::make_shared<int>(0);
                                                 Trial trial;
                                                 trial.threads.assign(2, [first] {
                                                   const int number = ++*first;
                                                   IDEM_PAUSE_POINT("one");
                                                   if (number == 1 && *first == 2) std::abort();
                                                 });
                                                 trial.verdict = [] { return Verdict{}; };
                                                 return trial;
                                               })),
               "IDEM_SCHEDULE=0x1,1x2");
}

// A trial that depends on more than its choices cannot be explored, and is not taken for held.
TEST(ScheduleExplorerTest, ATrialThatIsNotTheSameEachTimeIsRefused) {
  int trials = 0;
  const Report report = explore_up_to(1, [&trials] {
    Trial trial = strangers(2);
    if (++trials > 3) trial.threads[0] = [] { IDEM_PAUSE_POINT("another"); };
    return trial;
  });
  EXPECT_NE(report.broken.find("not the same each time"), std::string::npos) << report.broken;
}

TEST(ScheduleExplorerTest, AScheduleThatIsNoneIsRefused) {
  for (const char* text : {"x", "0", "0x", "0x1,", "9x1", "0x1;1x1", "-1x2"}) {
    Options options;
    options.replay = text;
    EXPECT_NE(explore(options, [] { return strangers(2); }).broken, "") << text;
  }
}

}  // namespace
}  // namespace idem::schedules
