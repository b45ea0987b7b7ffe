// The combiner: group commit for any store whose round trip is dear.
//
// Concurrent single calls are gathered by whichever caller is first and executed as one batch; each
// caller gets its own answer. At concurrency 1 it adds nothing measurable and never waits for
// company. (The scheme is that of LevelDB's writer queue.)
#pragma once

#include <condition_variable>
#include <cstddef>
#include <deque>
#include <functional>
#include <mutex>
#include <span>
#include <thread>
#include <vector>

namespace idem {

// A unit of work to be combined. Derive; the executor casts back. Answers go into the derived job.
class CombinerJob {
 public:
  CombinerJob() = default;
  CombinerJob(const CombinerJob&) = delete;
  CombinerJob& operator=(const CombinerJob&) = delete;
  virtual ~CombinerJob() = default;

 private:
  friend class Combiner;
  std::function<void()> done_;  // asynchronous jobs; empty for a blocked caller
  bool finished_ = false;
  bool leads_ = false;
  std::condition_variable* wake_ = nullptr;
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
  ~Combiner();  // waits for the asynchronous jobs

  // Returns when the job was executed. The calling thread may execute it, and others' with it.
  void run(CombinerJob& job);

  // Returns at once; `done` is called when the job was executed, from a thread of the combiner. The
  // job must live until then. Starts the combiner's own threads (one per lane) at first use.
  void submit(CombinerJob& job, std::function<void()> done);
};

}  // namespace idem
