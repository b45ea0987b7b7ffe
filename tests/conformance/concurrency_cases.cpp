// Concurrency: racing threads on one store.
#include <gtest/gtest.h>

#include <atomic>
#include <barrier>
#include <string>

#include "drafts.hpp"
#include "idem/conformance/suites.hpp"
#include "idem/testing/describe.hpp"
#include "threads.hpp"

namespace idem::conformance {
namespace {

using namespace std::chrono_literals;
using State = Answer::State;

constexpr std::size_t kThreads = 8;

#define IDEM_EXACT_ONLY() \
  if (GetParam().loses_answers) GTEST_SKIP() << "missing: a store whose every answer arrives"

Answer insert(IdempotencyStore& store, KeyRef key, const Draft& draft) {
  Insert op{key, draft, {}};
  store.insert({&op, 1});
  return op.answer;
}

Answer replace(IdempotencyStore& store, KeyRef key, std::uint64_t expected, const Draft& draft) {
  Replace op{key, expected, draft, {}};
  store.replace({&op, 1});
  return op.answer;
}

Answer load(IdempotencyStore& store, KeyRef key) {
  Load op{key, {}};
  store.load({&op, 1});
  return op.answer;
}

Answer remove(IdempotencyStore& store, KeyRef key, std::uint64_t expected) {
  Remove op{key, expected, {}};
  store.remove({&op, 1});
  return op.answer;
}

// Two winners of one insert run the business twice.
TEST_P(Concurrency, OfRacingInsertsExactlyOneIsWritten) {
  IDEM_EXACT_ONLY();
  constexpr int kKeys = kSlowBuild ? 50 : 300;
  std::barrier<> start(kThreads);
  std::vector<std::atomic<int>> written(kKeys);
  std::atomic<int> others{0};
  in_threads(kThreads, [&](std::size_t thread) {
    for (int i = 0; i < kKeys; ++i) {
      const std::string key = "k" + std::to_string(i);
      start.arrive_and_wait();
      const Answer answer =
          insert(store(), {"", "", key}, processing(static_cast<std::uint8_t>(thread)));
      if (answer.state == State::written) ++written[static_cast<std::size_t>(i)];
      if (answer.state != State::written && answer.state != State::stands) ++others;
    }
  });
  for (int i = 0; i < kKeys; ++i) EXPECT_EQ(written[static_cast<std::size_t>(i)], 1) << "key " << i;
  EXPECT_EQ(others, 0) << "an answer that is neither written nor stands";
}

// insert ... remove as a critical section: whoever is in it must be alone.
TEST_P(Concurrency, NobodyHoldsAKeyThatAnotherHolds) {
  IDEM_EXACT_ONLY();
  constexpr int kRounds = kSlowBuild ? 50 : 200;
  std::atomic<int> inside{0};
  std::atomic<int> crowded{0};
  std::atomic<int> entered{0};
  in_threads(kThreads, [&](std::size_t thread) {
    for (int i = 0; i < kRounds; ++i) {
      const Answer answer =
          insert(store(), {"", "", "k"}, processing(static_cast<std::uint8_t>(thread)));
      if (answer.state != State::written) continue;
      ++entered;
      if (++inside != 1) ++crowded;
      std::this_thread::yield();
      --inside;
      if (remove(store(), {"", "", "k"}, answer.held.version).state != State::written) ++crowded;
    }
  });
  EXPECT_EQ(crowded, 0);
  EXPECT_GT(entered, 0);
}

// A lost update here is a takeover by two.
TEST_P(Concurrency, NoReplaceIsLost) {
  IDEM_EXACT_ONLY();
  constexpr int kEach = kSlowBuild ? 20 : 50;
  ASSERT_EQ(insert(store(), {"", "", "k"}, processing()).state, State::written);
  in_threads(kThreads, [&](std::size_t) {
    Record seen = load(store(), {"", "", "k"}).held;
    for (int done = 0; done < kEach;) {
      Draft draft = renewal(seen);
      draft.attempt = seen.attempt + 1;
      const Answer answer = replace(store(), {"", "", "k"}, seen.version, draft);
      if (answer.state == State::written) ++done;
      seen = answer.held;
    }
  });
  EXPECT_EQ(load(store(), {"", "", "k"}).held.attempt, 1 + kThreads * kEach);
}

// Half of one record and half of another would be replayed as a result nobody ever gave.
TEST_P(Concurrency, ReadersSeeWholeRecordsOnly) {
  IDEM_EXACT_ONLY();
  constexpr int kWrites = kSlowBuild ? 50 : 200;
  const Record first = insert(store(), {"", "", "k"}, processing()).held;
  std::atomic<bool> stop{false};
  std::atomic<int> torn{0};
  in_threads(4, [&](std::size_t thread) {
    if (thread == 0) {
      Record seen = first;
      for (int i = 0; i < kWrites; ++i) {
        const std::string result(static_cast<std::size_t>(1 + i * 37),
                                 static_cast<char>('a' + i % 26));
        Draft draft = success(seen, result);
        draft.attempt = static_cast<std::uint32_t>(result.size());
        seen = replace(store(), {"", "", "k"}, seen.version, draft).held;
      }
      stop = true;
      return;
    }
    std::uint64_t last = 0;
    while (!stop) {
      const Record seen = load(store(), {"", "", "k"}).held;
      const bool one_letter =
          seen.result.find_first_not_of(seen.result.empty() ? 'a' : seen.result.front()) ==
          std::string::npos;
      const bool whole = seen.status == Status::processing || seen.attempt == seen.result.size();
      if (!one_letter || !whole || seen.version < last) ++torn;
      last = seen.version;
    }
  });
  EXPECT_EQ(torn, 0);
}

// The sweep tests and removes in one step: a key claimed again meanwhile stays.
TEST_P(Concurrency, ASweepNeverRemovesWhatWasClaimedAgain) {
  IDEM_EXACT_ONLY();
  constexpr int kRounds = kSlowBuild ? 30 : 100;
  for (int i = 0; i < kRounds; ++i) {
    const std::string key = "k" + std::to_string(i);
    Draft dying = processing(1);
    dying.keep = Micros(1);
    const Record old = insert(store(), {"", "", key}, dying).held;
    ASSERT_LE(old.expires_at - old.update_time, 1ms) << "or it never expires";
    Answer seen;
    do seen = load(store(), {"", "", key});
    while (!old.expired(seen.now));
    std::barrier<> start(3);
    State claimed = State::failed;
    std::atomic<std::uint64_t> removed{0};
    in_threads(3, [&](std::size_t thread) {
      start.arrive_and_wait();
      if (thread == 0) {
        claimed = replace(store(), {"", "", key}, old.version, processing(2)).state;
      } else {
        removed += store().sweep(10).value();
      }
    });
    const State left = load(store(), {"", "", key}).state;
    if (claimed == State::written) {
      EXPECT_EQ(left, State::stands) << "round " << i;
      EXPECT_EQ(removed, 0u);
    } else {
      EXPECT_EQ(claimed, State::absent);
      EXPECT_EQ(left, State::absent);
      EXPECT_EQ(removed, store().capabilities().frees_by_itself ? removed.load() : 1u);
    }
  }
}

// Batches whose keys come in opposite orders must not wait for each other for ever.
TEST_P(Concurrency, BatchesInOppositeOrderShareTheKeys) {
  IDEM_EXACT_ONLY();
  constexpr int kRounds = kSlowBuild ? 5 : 20;
  constexpr std::size_t kKeys = 100;
  for (int round = 0; round < kRounds; ++round) {
    std::vector<std::string> keys;
    for (std::size_t i = 0; i < kKeys; ++i) {
      keys.push_back("r" + std::to_string(round) + "-" + std::to_string(i));
    }
    std::vector<std::atomic<int>> owners(kKeys);
    std::atomic<int> errors{0};
    std::barrier<> start(2);
    in_threads(2, [&](std::size_t thread) {
      std::vector<Insert> ops;
      for (std::size_t i = 0; i < kKeys; ++i) {
        const std::size_t at = thread == 0 ? i : kKeys - 1 - i;
        ops.push_back({{"", "", keys[at]}, processing(static_cast<std::uint8_t>(thread)), {}});
      }
      start.arrive_and_wait();
      store().insert(ops);
      for (std::size_t i = 0; i < kKeys; ++i) {
        const std::size_t at = thread == 0 ? i : kKeys - 1 - i;
        if (ops[i].answer.state == State::written) ++owners[at];
        if (ops[i].answer.state == State::failed) ++errors;
      }
    });
    for (std::size_t i = 0; i < kKeys; ++i) ASSERT_EQ(owners[i], 1) << keys[i];
    ASSERT_EQ(errors, 0);
  }
}

}  // namespace
}  // namespace idem::conformance
