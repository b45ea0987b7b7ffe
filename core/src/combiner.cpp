#include "idem/combiner.hpp"

#include <algorithm>
#include <cassert>
#include <utility>

namespace idem {

void Combiner::Line::push(CombinerJob& job) {
  job.next_ = nullptr;
  (head_ == nullptr ? head_ : tail_->next_) = &job;
  tail_ = &job;
  ++size_;
}

CombinerJob* Combiner::Line::pop() {
  CombinerJob* const job = head_;
  if (job == nullptr) return nullptr;
  head_ = job->next_;
  --size_;
  return job;
}

Combiner::Line Combiner::Line::take(std::size_t most) {
  if (size_ <= most) return std::exchange(*this, {});
  Line taken;
  while (taken.size_ < most) taken.push(*pop());
  return taken;
}

void Combiner::Line::append(Line others) {
  if (others.empty()) return;
  (head_ == nullptr ? head_ : tail_->next_) = others.head_;
  tail_ = others.tail_;
  size_ += others.size_;
}

Combiner::Combiner(Options options, Execute execute)
    : options_{std::max<std::size_t>(options.lanes, 1),
               std::max<std::size_t>(options.jobs_per_batch, 1), options.patience},
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
  Line jobs;
  CombinerJob* next = nullptr;
  {
    const std::lock_guard lock(mutex_);
    job.bell_ = line_.empty() ? nullptr : &bells_[bell_].rung;
    job.state_.store(CombinerJob::waiting, std::memory_order_relaxed);
    line_.push(job);
    if (may_open() && line_.size() <= options_.jobs_per_batch) {
      job.lane_ = take_lane();
      jobs = take_batch(options_.jobs_per_batch);
    } else {
      next = hand_over();
    }
  }
  if (next != nullptr) tell(*next, CombinerJob::leads);
  if (jobs.empty()) {
    if (await_turn(job) == CombinerJob::finished) return;
    jobs = followers(job);
  }
  lead(job.lane_, jobs, &job);
}

std::size_t Combiner::waiting() const {
  const std::lock_guard lock(mutex_);
  return line_.size();
}

// Until the job is finished, or is to lead. acquire: pairs with the release stores of tell() and
// tell_finished(), a bell's with their additions.
CombinerJob::State Combiner::await_turn(CombinerJob& job) {
  const bool first = job.bell_ == nullptr;
  const ParkingWord& word = first ? job.state_ : *job.bell_;
  Micros patience = options_.patience;
  for (;;) {
    const std::uint32_t seen = word.load(std::memory_order_acquire);
    const std::uint32_t state = job.state_.load(std::memory_order_acquire);
    if (state != CombinerJob::waiting) return static_cast<CombinerJob::State>(state);
    if (!first || options_.lanes == 1) {
      park(word, seen);
    } else {
      park_for(word, seen, patience);
      if (job.state_.load(std::memory_order_relaxed) == CombinerJob::waiting &&
          lost_patience(job)) {
        return CombinerJob::leads;
      }
      patience *= 2;
    }
  }
}

// Whether a job that is first in line has taken a lane that is free.
bool Combiner::lost_patience(CombinerJob& job) {
  const std::lock_guard lock(mutex_);
  if (line_.front() != &job || free_lanes_.empty()) return false;
  (void)line_.pop();
  ++under_way_;
  job.lane_ = take_lane();
  return true;
}

// The job may be gone once its state is stored.
void Combiner::tell(CombinerJob& job, CombinerJob::State state) {
  ParkingWord* const bell = job.bell_;
  ParkingWord& own = job.state_;
  own.store(state, std::memory_order_release);
  if (bell == nullptr) return unpark_one(own);
  bell->fetch_add(1, std::memory_order_release);
  unpark_all(*bell);
}

// As tell(), but rings each bell once.
void Combiner::tell_finished(Line& jobs) {
  ParkingWord* bell = nullptr;
  const auto ring = [&] {
    if (bell == nullptr) return;
    bell->fetch_add(1, std::memory_order_release);
    unpark_all(*bell);
  };
  while (CombinerJob* job = jobs.pop()) {
    if (job->bell_ == nullptr) {
      tell(*job, CombinerJob::finished);
      continue;
    }
    if (job->bell_ != bell) {
      ring();
      bell = job->bell_;
    }
    job->state_.store(CombinerJob::finished, std::memory_order_release);
  }
  ring();
}

void Combiner::submit(CombinerJob& job, std::function<void()> done) {
  const std::lock_guard lock(mutex_);
  start_threads();
  job.done_ = std::move(done);
  ++asynchronous_;
  line_.push(job);
  if (free_lanes_.empty()) return;
  offered_lanes_.push_back(take_lane());
  work_.notify_one();
}

// Whether the line may have another lane, if one is free. What nobody blocks for gets one at once:
// a thread of ours waits for it anyway.
bool Combiner::may_open() const {
  if (free_lanes_.empty() || line_.empty()) return false;
  return line_.front()->done_ || line_.size() >= under_way_;
}

std::size_t Combiner::take_lane() {
  const std::size_t lane = free_lanes_.back();
  free_lanes_.pop_back();
  return lane;
}

// So many at most are under way now. With the lock held.
Combiner::Line Combiner::take_batch(std::size_t most) {
  bell_ = (bell_ + 1) % bells_.size();
  Line jobs = line_.take(most);
  under_way_ += jobs.size();
  return jobs;
}

// The batch of a leader that was handed its lane. Those of the batch before have been told at the
// same time: if nobody is in line yet, they are let by once. Else two callers in turn would take a
// round trip each, for ever.
Combiner::Line Combiner::followers(CombinerJob& leader) {
  Line jobs;
  jobs.push(leader);
  std::unique_lock lock(mutex_);
  if (line_.empty()) {
    lock.unlock();
    std::this_thread::yield();
    lock.lock();
  }
  jobs.append(take_batch(options_.jobs_per_batch - 1));
  return jobs;
}

// Executes the jobs, then gives the lane away and wakes the callers. `caller`: of the blocked
// caller that leads, which leaves the calling of `done` to the threads. Without the lock.
void Combiner::lead(std::size_t lane, Line jobs, const CombinerJob* caller) {
  auto& batch = batches_[lane];
  batch.clear();
  while (CombinerJob* job = jobs.pop()) batch.push_back(job);

  execute_(lane, batch);

  Line blocked;
  Line asynchronous;
  for (CombinerJob* job : batch) {
    if (job->done_)
      asynchronous.push(*job);
    else if (job != caller)
      blocked.push(*job);
  }
  CombinerJob* next = nullptr;
  {
    const std::lock_guard lock(mutex_);
    if (caller != nullptr && !asynchronous.empty()) {
      while (CombinerJob* job = asynchronous.pop()) executed_.push(*job);
      work_.notify_one();
    }
    under_way_ -= batch.size();
    free_lanes_.push_back(lane);  // `batch` belongs to the next leader from here on
    next = hand_over();
  }
  if (next != nullptr) tell(*next, CombinerJob::leads);
  tell_finished(blocked);
  while (CombinerJob* job = asynchronous.pop()) {
    std::unique_lock lock(mutex_);
    call_done(lock, *job);
  }
}

// A free lane goes to the first in line, if the line may have one: to its caller, which is returned
// and to be told, or to a thread of ours if nobody waits in it. With the lock held.
CombinerJob* Combiner::hand_over() {
  if (!may_open()) return nullptr;
  const std::size_t lane = take_lane();
  if (line_.front()->done_) {
    offered_lanes_.push_back(lane);
    work_.notify_one();
    return nullptr;
  }
  CombinerJob* const next = line_.pop();
  ++under_way_;
  next->lane_ = lane;
  return next;
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
      if (!line_.empty()) {
        const Line jobs = take_batch(options_.jobs_per_batch);
        lock.unlock();
        lead(lane, jobs, nullptr);
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
