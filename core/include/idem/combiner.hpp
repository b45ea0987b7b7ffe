// The combiner: group commit for any store whose round trip is dear.
//
// Concurrent single calls are gathered by whichever caller is first and executed as one batch; each
// caller gets its own answer. At concurrency 1 it adds nothing measurable and never waits for
// company. (The scheme is that of LevelDB's writer queue.)
//
// A lane is one batch under way. A caller that finds none under way leads at once. Whoever comes
// meanwhile waits in line, and what waits becomes the next batch: on this lane when it is free, or
// on another one as soon as as many wait as are under way, so that batches stay large and lanes
// still overlap; or when the first in line has waited for Options::patience. A leader serves one
// batch only, so nobody works for others for long and nobody is overtaken.
//
// Those who wait sleep until they are told, a whole batch on one bell: waking its callers is one
// call of the system. Only the first in line sleeps alone: it is next to lead, and woken before
// them.
#pragma once

#include <array>
#include <condition_variable>
#include <cstddef>
#include <functional>
#include <mutex>
#include <span>
#include <thread>
#include <vector>

#include "idem/park.hpp"

namespace idem {

// A unit of work to be combined. Derive; the executor casts back. Answers go into the derived job.
// May be given to the combiner again once it was executed.
class CombinerJob {
 public:
  CombinerJob() = default;
  CombinerJob(const CombinerJob&) = delete;
  CombinerJob& operator=(const CombinerJob&) = delete;
  virtual ~CombinerJob() = default;

 private:
  friend class Combiner;
  enum State : std::uint32_t { waiting, leads, finished };

  // Of a blocked caller's job: what it waits for, and where it sleeps; nullptr: on its own state.
  ParkingWord state_{waiting};
  ParkingWord* bell_ = nullptr;
  std::size_t lane_ = 0;         // leads: the lane it has
  CombinerJob* next_ = nullptr;  // in line, in a batch, or among the executed
  std::function<void()> done_;   // asynchronous jobs; empty for a blocked caller
};

// Thread safe. Outlives every job given to it.
class Combiner {
 public:
  // Runs one batch, on one lane at a time: 0 <= lane < lanes. Must not throw. Jobs are in the order
  // of their submission.
  using Execute = std::function<void(std::size_t lane, std::span<CombinerJob* const> jobs)>;

  struct Options {
    std::size_t lanes = 1;  // batches under way at once: one connection each
    std::size_t jobs_per_batch = 256;
    // How long the first in line leaves a free lane alone for want of company.
    Micros patience = std::chrono::milliseconds(1);
  };

  Combiner(Options options, Execute execute);

  // Waits for the asynchronous jobs. No run() may be under way; not to be called from a `done`.
  ~Combiner();

  Combiner(const Combiner&) = delete;
  Combiner& operator=(const Combiner&) = delete;

  // Returns when the job was executed. The calling thread may execute it, and others' with it.
  // Allocates nothing.
  void run(CombinerJob& job);

  // Returns at once; `done` is called when the job was executed, from a thread of the combiner. The
  // job must live until then. Starts the combiner's own threads (one per lane) at first use.
  // `done` must be short, must not throw and must not block on this combiner; it may submit.
  void submit(CombinerJob& job, std::function<void()> done);

  // Jobs in line, at a glance.
  [[nodiscard]] std::size_t waiting() const;

 private:
  // First in, first out, linked through CombinerJob::next_.
  class Line {
   public:
    [[nodiscard]] bool empty() const { return head_ == nullptr; }
    [[nodiscard]] std::size_t size() const { return size_; }
    [[nodiscard]] CombinerJob* front() const { return head_; }
    void push(CombinerJob& job);
    void append(Line others);
    CombinerJob* pop();  // nullptr if empty
    // The first of them, so many at most; all of them at no cost per job.
    [[nodiscard]] Line take(std::size_t most);

   private:
    CombinerJob* head_ = nullptr;
    CombinerJob* tail_ = nullptr;
    std::size_t size_ = 0;
  };
  // Rung when the jobs of a batch are finished. Whoever came for another batch sleeps again.
  struct alignas(64) Bell {
    ParkingWord rung{0};
  };

  CombinerJob::State await_turn(CombinerJob& job);
  bool lost_patience(CombinerJob& job);
  static void tell(CombinerJob& job, CombinerJob::State state);
  static void tell_finished(Line& jobs);
  [[nodiscard]] bool may_open() const;
  std::size_t take_lane();
  Line take_batch(std::size_t most);
  Line followers(CombinerJob& leader);
  void lead(std::size_t lane, Line jobs, const CombinerJob* caller);
  CombinerJob* hand_over();
  void start_threads();
  void serve();
  void call_done(std::unique_lock<std::mutex>& lock, CombinerJob& job);

  const Options options_;
  const Execute execute_;
  std::vector<std::vector<CombinerJob*>> batches_;  // one per lane, used by its leader only

  mutable std::mutex mutex_;  // guards everything below
  // If somebody is in line, a batch is under way or offered: its end looks at the line.
  std::vector<std::size_t> free_lanes_;
  std::size_t under_way_ = 0;  // jobs
  Line line_;
  // One for those who come while a batch is under way, then the next.
  std::array<Bell, 8> bells_;
  std::size_t bell_ = 0;
  // Work for the combiner's own threads: lanes to lead, and executed jobs whose `done` is to be
  // called.
  std::vector<std::size_t> offered_lanes_;
  Line executed_;
  std::size_t asynchronous_ = 0;  // submitted, `done` not yet returned
  bool stopping_ = false;
  std::condition_variable work_;
  std::condition_variable idle_;
  std::vector<std::thread> threads_;
};

}  // namespace idem
