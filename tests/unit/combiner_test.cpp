#include "idem/combiner.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <future>
#include <latch>
#include <memory>
#include <numeric>
#include <thread>
#include <vector>

namespace idem {
namespace {

using testing::Each;
using testing::ElementsAre;

struct Square final : CombinerJob {
  explicit Square(int value) : in(value) {}
  int in;
  int out = 0;
  std::atomic<int> executions{0};
};

Square& as_square(CombinerJob* job) { return static_cast<Square&>(*job); }

void execute_all(std::span<CombinerJob* const> jobs) {
  for (CombinerJob* job : jobs) {
    Square& square = as_square(job);
    square.out = square.in * square.in;
    square.executions.fetch_add(1);
  }
}

// A combiner whose first batch stays under way until open() is called, so that a test decides who
// stands in line behind it. Records the batches by the jobs' inputs.
class Gated {
 public:
  explicit Gated(std::size_t jobs_per_batch = 256, std::size_t lanes = 1)
      : combiner({lanes, jobs_per_batch},
                 [this](std::size_t, std::span<CombinerJob* const> jobs) { execute(jobs); }) {}

  void wait_until_entered() { entered_.get_future().wait(); }
  void open() { gate_.set_value(); }
  std::vector<std::vector<int>> batches() {
    const std::lock_guard lock(mutex_);
    return batches_;
  }

 private:
  void execute(std::span<CombinerJob* const> jobs) {
    std::vector<int> inputs;
    for (CombinerJob* job : jobs) inputs.push_back(as_square(job).in);
    {
      const std::lock_guard lock(mutex_);
      batches_.push_back(inputs);
    }
    if (!first_.exchange(false)) return execute_all(jobs);
    entered_.set_value();
    gate_.get_future().wait();
    execute_all(jobs);
  }

  std::mutex mutex_;
  std::vector<std::vector<int>> batches_;
  std::atomic<bool> first_{true};
  std::promise<void> entered_;
  std::promise<void> gate_;

 public:
  Combiner combiner;  // last: its threads end first
};

TEST(Combiner, ALoneCallerExecutesItsOwnJobInItsOwnThread) {
  std::thread::id executor;
  Combiner combiner({}, [&](std::size_t lane, std::span<CombinerJob* const> jobs) {
    EXPECT_EQ(lane, 0U);
    EXPECT_EQ(jobs.size(), 1U);
    executor = std::this_thread::get_id();
    execute_all(jobs);
  });
  Square job(7);
  combiner.run(job);
  EXPECT_EQ(job.out, 49);
  EXPECT_EQ(executor, std::this_thread::get_id());
  combiner.run(job);  // a job may be given again
  EXPECT_EQ(job.executions, 2);
}

// An answer given to the wrong caller would replay one user's result to another.
TEST(Combiner, EveryJobIsExecutedOnceAndAnsweredToItsCaller) {
  constexpr int kThreads = 16;
  constexpr int kJobs = 2'000;
  for (const std::size_t lanes : {std::size_t{1}, std::size_t{3}}) {
    std::vector<std::atomic<int>> busy(lanes);
    std::atomic<int> overlaps{0};
    Combiner combiner({lanes, 8}, [&](std::size_t lane, std::span<CombinerJob* const> jobs) {
      if (busy[lane].fetch_add(1) != 0) overlaps.fetch_add(1);
      execute_all(jobs);
      busy[lane].fetch_sub(1);
    });
    std::atomic<int> wrong{0};
    std::vector<std::thread> threads;
    for (int t = 0; t < kThreads; ++t) {
      threads.emplace_back([&, t] {
        for (int i = 0; i < kJobs; ++i) {
          Square job(t * kJobs + i % 100);
          combiner.run(job);
          if (job.out != job.in * job.in || job.executions != 1) wrong.fetch_add(1);
        }
      });
    }
    for (std::thread& thread : threads) thread.join();
    EXPECT_EQ(wrong, 0);
    EXPECT_EQ(overlaps, 0) << "two batches at once on one lane";
  }
}

// What waits while a batch is under way makes the next batches, in the order of submission; the
// leader of the first does not serve them.
TEST(Combiner, WaitingJobsFormBatchesInOrder) {
  Gated gated(3);
  std::vector<std::unique_ptr<Square>> jobs;
  for (int i = 0; i < 8; ++i) jobs.push_back(std::make_unique<Square>(i));
  std::latch done(8);
  gated.combiner.submit(*jobs[0], [&] { done.count_down(); });
  gated.wait_until_entered();
  for (std::size_t i = 1; i < jobs.size(); ++i)
    gated.combiner.submit(*jobs[i], [&] { done.count_down(); });
  gated.open();
  done.wait();
  EXPECT_THAT(gated.batches(), ElementsAre(ElementsAre(0), ElementsAre(1, 2, 3),
                                           ElementsAre(4, 5, 6), ElementsAre(7)));
}

// If leadership were lost on the way, the callers in line would sleep for ever.
TEST(Combiner, LeadershipPassesFromCallerToCaller) {
  Gated gated(1);
  std::vector<std::thread> threads;
  std::atomic<int> sum{0};
  threads.emplace_back([&] {
    Square job(0);
    gated.combiner.run(job);
  });
  gated.wait_until_entered();
  for (int i = 1; i <= 10; ++i) {
    threads.emplace_back([&, i] {
      Square job(i);
      gated.combiner.run(job);
      sum += job.out;
    });
  }
  gated.open();
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(sum, 385);
  EXPECT_EQ(gated.batches().size(), 11U);
}

// `done` may take locks that the leading caller holds: it must never run in a caller's thread.
TEST(Combiner, DoneRunsInAThreadOfTheCombinerEvenIfACallerLed) {
  Gated gated;
  std::thread::id leader;
  std::promise<std::thread::id> done;
  std::thread caller([&] {
    leader = std::this_thread::get_id();
    Square job(1);
    gated.combiner.run(job);
  });
  gated.wait_until_entered();
  // In line: a blocked caller's job, which will lead if it comes first, and an asynchronous one.
  std::thread follower([&] {
    Square job(2);
    gated.combiner.run(job);
  });
  Square job(3);
  gated.combiner.submit(job, [&] { done.set_value(std::this_thread::get_id()); });
  gated.open();
  const std::thread::id ran_in = done.get_future().get();
  EXPECT_EQ(job.out, 9);
  EXPECT_NE(ran_in, std::this_thread::get_id());
  EXPECT_NE(ran_in, caller.get_id());
  EXPECT_NE(ran_in, follower.get_id());
  caller.join();
  follower.join();
}

TEST(Combiner, DoneMaySubmitAgain) {
  Combiner combiner({}, [](std::size_t, auto jobs) { execute_all(jobs); });
  Square job(5);
  std::promise<void> finished;
  std::function<void()> again = [&] {
    if (job.executions < 100)
      combiner.submit(job, again);
    else
      finished.set_value();
  };
  combiner.submit(job, again);
  finished.get_future().wait();
  EXPECT_EQ(job.executions, 100);
}

TEST(Combiner, CallersAndContinuationsMixOnSeveralLanes) {
  constexpr int kAsynchronous = 5'000;
  std::vector<std::unique_ptr<Square>> jobs;
  std::atomic<int> wrong{0};
  std::atomic<int> called{0};
  for (int i = 0; i < kAsynchronous; ++i) jobs.push_back(std::make_unique<Square>(i % 1'000));
  {
    Combiner combiner({2, 16}, [](std::size_t, auto batch) { execute_all(batch); });
    std::vector<std::thread> threads;
    for (int t = 0; t < 4; ++t) {
      threads.emplace_back([&] {
        for (int i = 0; i < 1'000; ++i) {
          Square job(i);
          combiner.run(job);
          if (job.out != i * i || job.executions != 1) wrong.fetch_add(1);
        }
      });
    }
    for (auto& job : jobs) {
      combiner.submit(*job, [&, square = job.get()] {
        called.fetch_add(1);
        if (square->out != square->in * square->in || square->executions != 1) wrong.fetch_add(1);
      });
    }
    for (std::thread& thread : threads) thread.join();
  }  // the destructor waits for what is still in line
  EXPECT_EQ(called, kAsynchronous);
  EXPECT_EQ(wrong, 0);
}

TEST(Combiner, TheDestructorWaitsForAsynchronousJobs) {
  std::atomic<int> called{0};
  std::vector<std::unique_ptr<Square>> jobs;
  for (int i = 0; i < 100; ++i) jobs.push_back(std::make_unique<Square>(i));
  {
    Gated gated(2);
    for (auto& job : jobs) gated.combiner.submit(*job, [&] { called.fetch_add(1); });
    gated.open();
  }
  EXPECT_EQ(called, 100);
}

// A second lane must not stand idle while the first is busy.
TEST(Combiner, ASecondLaneRunsWhileTheFirstIsUnderWay) {
  Gated gated(256, 2);
  std::thread first([&] {
    Square job(1);
    gated.combiner.run(job);
  });
  gated.wait_until_entered();
  Square job(2);
  gated.combiner.run(job);  // would never return if there were one lane
  EXPECT_EQ(job.out, 4);
  gated.open();
  first.join();
}

// Jobs that stay under way until they are let go, one by one.
struct Held final : CombinerJob {
  std::promise<void> entered;
  std::promise<void> gate;
};

class Holding {
 public:
  explicit Holding(Combiner::Options options)
      : combiner(options,
                 [this](std::size_t, std::span<CombinerJob* const> jobs) { execute(jobs); }) {}

  // A caller of its own for this job.
  void call(Held& job) {
    callers_.emplace_back([this, &job] { combiner.run(job); });
  }
  void call_and_enter(Held& job) {
    call(job);
    job.entered.get_future().wait();
  }
  void join() {
    for (std::thread& caller : callers_) caller.join();
  }
  std::vector<std::size_t> batches() {
    const std::lock_guard lock(mutex_);
    return batches_;
  }
  Combiner combiner;

 private:
  void execute(std::span<CombinerJob* const> jobs) {
    {
      const std::lock_guard lock(mutex_);
      batches_.push_back(jobs.size());
    }
    for (CombinerJob* job : jobs) static_cast<Held*>(job)->entered.set_value();
    for (CombinerJob* job : jobs) static_cast<Held*>(job)->gate.get_future().wait();
  }

  std::mutex mutex_;
  std::vector<std::size_t> batches_;
  std::vector<std::thread> callers_;
};

// Small batches on many lanes cost a round trip each, and each round trip a commit.
TEST(Combiner, AnotherLaneIsOpenedOnceAsManyWaitAsAreUnderWay) {
  Holding holding({.lanes = 3, .patience = std::chrono::hours(1)});
  std::array<Held, 4> jobs;
  holding.call_and_enter(jobs[0]);  // alone
  holding.call_and_enter(jobs[1]);  // one waits, one is under way
  holding.call(jobs[2]);            // one waits, two are
  while (holding.combiner.waiting() != 1) std::this_thread::yield();
  EXPECT_EQ(holding.batches().size(), 2U);
  holding.call_and_enter(jobs[3]);
  jobs[2].entered.get_future().wait();
  EXPECT_THAT(holding.batches(), ElementsAre(1U, 1U, 2U));
  for (Held& job : jobs) job.gate.set_value();
  holding.join();
}

// The end of a batch looks at the line, too: nobody else would.
TEST(Combiner, WhoWaitsForCompanyGoesWhenFewerAreUnderWay) {
  Holding holding({.lanes = 3, .patience = std::chrono::hours(1)});
  std::array<Held, 3> jobs;
  holding.call_and_enter(jobs[0]);
  holding.call_and_enter(jobs[1]);
  holding.call(jobs[2]);
  jobs[0].gate.set_value();
  jobs[2].entered.get_future().wait();
  jobs[1].gate.set_value();
  jobs[2].gate.set_value();
  holding.join();
}

// A server that hangs on one connection must not keep others from a free one.
TEST(Combiner, TheFirstInLineWaitsNoLongerForCompanyThanItsPatience) {
  Holding holding({.lanes = 3, .patience = std::chrono::milliseconds(1)});
  std::array<Held, 3> jobs;
  for (Held& job : jobs) holding.call_and_enter(job);  // the last one: two are under way
  EXPECT_THAT(holding.batches(), ElementsAre(1U, 1U, 1U));
  for (Held& job : jobs) job.gate.set_value();
  holding.join();
}

}  // namespace
}  // namespace idem
