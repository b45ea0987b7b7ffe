#include "idem/combiner.hpp"

#include <algorithm>
#include <cassert>
#include <utility>

namespace idem {

void Combiner::Line::push(CombinerJob& job) {
  job.next_ = nullptr;
  (head_ == nullptr ? head_ : tail_->next_) = &job;
  tail_ = &job;
}

CombinerJob* Combiner::Line::pop() {
  CombinerJob* const job = head_;
  if (job != nullptr) head_ = job->next_;
  return job;
}

Combiner::Combiner(Options options, Execute execute)
    : options_{std::max<std::size_t>(options.lanes, 1),
               std::max<std::size_t>(options.jobs_per_batch, 1)},
      execute_(std::move(execute)),
      batches_(options_.lanes) {
  for (auto& batch : batches_) batch.reserve(options_.jobs_per_batch);
  free_lanes_.reserve(options_.lanes);
  offered_lanes_.reserve(options_.lanes);
  for (std::size_t lane = options_.lanes; lane-- > 0;) free_lanes_.push_back(lane);
}

Combiner::~Combiner() {
  {
    std::unique_lock lock(mutex_);
    idle_.wait(lock, [&] { return asynchronous_ == 0; });
    stopping_ = true;
    work_.notify_all();
  }
  for (std::thread& thread : threads_) thread.join();
  assert(line_.empty() && "a run() outlives its combiner");
}

void Combiner::run(CombinerJob& job) {
  std::unique_lock lock(mutex_);
  if (!free_lanes_.empty()) {
    const std::size_t lane = free_lanes_.back();
    free_lanes_.pop_back();
    lead(lock, lane, job, true);
    return;
  }
  job.state_.store(CombinerJob::waiting, std::memory_order_relaxed);
  line_.push(job);
  lock.unlock();
  int state = CombinerJob::waiting;
  // acquire: pairs with the release stores in lead() and hand_over().
  while ((state = job.state_.load(std::memory_order_acquire)) == CombinerJob::waiting)
    job.state_.wait(CombinerJob::waiting, std::memory_order_acquire);
  if (state == CombinerJob::finished) return;
  lock.lock();
  lead(lock, job.lane_, job, true);
}

void Combiner::submit(CombinerJob& job, std::function<void()> done) {
  const std::lock_guard lock(mutex_);
  start_threads();
  job.done_ = std::move(done);
  ++asynchronous_;
  line_.push(job);
  if (free_lanes_.empty()) return;
  offered_lanes_.push_back(free_lanes_.back());
  free_lanes_.pop_back();
  work_.notify_one();
}

// Executes `first` and what stands in line behind it, then gives the lane away and wakes the
// callers. `caller`: a blocked caller leads; it leaves the calling of `done` to the threads.
// Enters with the lock held, returns without it.
void Combiner::lead(std::unique_lock<std::mutex>& lock, std::size_t lane, CombinerJob& first,
                    bool caller) {
  auto& batch = batches_[lane];
  batch.assign(1, &first);
  while (batch.size() < options_.jobs_per_batch && !line_.empty()) batch.push_back(line_.pop());
  lock.unlock();

  execute_(lane, batch);

  Line blocked;
  Line asynchronous;
  for (CombinerJob* job : batch) {
    if (job->done_)
      asynchronous.push(*job);
    else if (job != &first || !caller)
      blocked.push(*job);
  }

  lock.lock();
  if (caller && !asynchronous.empty()) {
    while (CombinerJob* job = asynchronous.pop()) executed_.push(*job);
    work_.notify_one();
  }
  hand_over(lane);  // `batch` belongs to the next leader from here on
  lock.unlock();

  while (CombinerJob* job = blocked.pop()) {
    // release: pairs with run(). The job may be gone after the store: notify_one() uses only its
    // address, and a stray wake-up is harmless, because run() looks at the state again.
    std::atomic<int>& state = job->state_;
    state.store(CombinerJob::finished, std::memory_order_release);
    state.notify_one();
  }
  while (CombinerJob* job = asynchronous.pop()) {
    lock.lock();
    call_done(lock, *job);
    lock.unlock();
  }
}

// The lane goes to the first in line: to its caller, or to a thread of ours if nobody waits in it.
// With the lock held.
void Combiner::hand_over(std::size_t lane) {
  if (line_.empty()) {
    free_lanes_.push_back(lane);
  } else if (line_.front()->done_) {
    offered_lanes_.push_back(lane);
    work_.notify_one();
  } else {
    CombinerJob* const next = line_.pop();
    next->lane_ = lane;
    std::atomic<int>& state = next->state_;
    state.store(CombinerJob::leads, std::memory_order_release);  // pairs with run()
    state.notify_one();
  }
}

void Combiner::start_threads() {
  if (!threads_.empty()) return;
  threads_.reserve(options_.lanes);
  for (std::size_t i = 0; i < options_.lanes; ++i) threads_.emplace_back([this] { serve(); });
}

void Combiner::serve() {
  std::unique_lock lock(mutex_);
  for (;;) {
    work_.wait(lock, [&] { return stopping_ || !executed_.empty() || !offered_lanes_.empty(); });
    if (CombinerJob* job = executed_.pop()) {
      if (!executed_.empty()) work_.notify_one();
      call_done(lock, *job);
    } else if (!offered_lanes_.empty()) {
      const std::size_t lane = offered_lanes_.back();
      offered_lanes_.pop_back();
      if (CombinerJob* first = line_.pop()) {
        lead(lock, lane, *first, false);
        lock.lock();
      } else {
        free_lanes_.push_back(lane);  // another lane's leader took them all
      }
    } else {
      return;
    }
  }
}

// With the lock held, except while `done` runs. The job may be gone afterwards.
void Combiner::call_done(std::unique_lock<std::mutex>& lock, CombinerJob& job) {
  lock.unlock();
  const auto done = std::exchange(job.done_, {});
  done();
  lock.lock();
  if (--asynchronous_ == 0) idle_.notify_all();
}

}  // namespace idem
