// The combiner: group commit for any store whose round trip is dear.
//
// Concurrent single calls are gathered by whichever caller is first and executed as one batch; each
// caller gets its own answer. At concurrency 1 it adds nothing measurable and never waits for
// company. (The scheme is that of LevelDB's writer queue.)
//
// A lane is one batch under way. A caller that finds a free lane leads: it executes its own job and
// everything that waits. Whoever comes meanwhile waits in line. A leader serves one batch only,
// then hands its lane to the first in line, so nobody works for others for long and nobody is
// overtaken.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstddef>
#include <functional>
#include <mutex>
#include <span>
#include <thread>
#include <vector>

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
  enum State : int { waiting, leads, finished };

  std::atomic<int> state_{waiting};  // of a blocked caller's job
  std::size_t lane_ = 0;             // leads: the lane that was handed over
  CombinerJob* next_ = nullptr;      // in line, in a batch, or among the executed
  std::function<void()> done_;       // asynchronous jobs; empty for a blocked caller
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

 private:
  // First in, first out, linked through CombinerJob::next_.
  class Line {
   public:
    [[nodiscard]] bool empty() const { return head_ == nullptr; }
    [[nodiscard]] CombinerJob* front() const { return head_; }
    void push(CombinerJob& job);
    CombinerJob* pop();  // nullptr if empty

   private:
    CombinerJob* head_ = nullptr;
    CombinerJob* tail_ = nullptr;
  };

  void lead(std::unique_lock<std::mutex>& lock, std::size_t lane, CombinerJob& first, bool caller);
  void hand_over(std::size_t lane);
  void start_threads();
  void serve();
  void call_done(std::unique_lock<std::mutex>& lock, CombinerJob& job);

  const Options options_;
  const Execute execute_;
  std::vector<std::vector<CombinerJob*>> batches_;  // one per lane, used by its leader only

  std::mutex mutex_;  // guards everything below
  // A free lane means that nobody is in line.
  std::vector<std::size_t> free_lanes_;
  Line line_;
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
