#include "lanes.hpp"

#include <vector>

namespace idem::detail {

AsyncLanes::AsyncLanes(std::shared_ptr<ServiceImpl> service, std::size_t lanes)
    : service_(std::move(service)) {
  if (lanes == 0) return;
  combiner_.emplace(Combiner::Options{lanes, 256},
                    [this](std::size_t, std::span<CombinerJob* const> jobs) { execute(jobs); });
}

AsyncLanes::~AsyncLanes() {
  closing_ = true;
  std::vector<std::shared_ptr<Operation>> waiting;
  {
    const std::lock_guard guard(mutex_);
    for (Operation* operation : waiting_) waiting.push_back(operation->shared_from_this());
  }
  for (const auto& operation : waiting) operation->cancel(*service_);
  waiting.clear();
  {
    std::unique_lock lock(mutex_);
    left_.wait(lock, [&] { return inside_ == 0; });
  }
  combiner_.reset();  // waits for what is under way
}

void AsyncLanes::run(const std::shared_ptr<Operation>& operation) {
  if (!combiner_) {
    CombinerJob* const job = operation.get();
    execute({&job, 1});
    operation->executed(*this);
    return;
  }
  combiner_->submit(*operation, [this, operation]() mutable {
    const auto mine = std::move(operation);  // the combiner may keep this function for a while
    mine->executed(*this);
  });
}

void AsyncLanes::execute(std::span<CombinerJob* const> jobs) {
  Batch batch;
  for (CombinerJob* job : jobs) {
    auto* const operation = static_cast<Operation*>(job);
    if (closing_) operation->cancel(*service_);
    operation->gather(batch);
  }
  if (!batch.claims.empty()) service_->claim_each(batch.claims);
  if (!batch.completes.empty()) service_->complete_each(batch.completes);
  for (std::size_t i = 0; i < batch.claims.size(); ++i) {
    *batch.claimed[i] = std::move(batch.claims[i].answer);
  }
  for (std::size_t i = 0; i < batch.completes.size(); ++i) {
    *batch.completed[i] = std::move(batch.completes[i].answer);
  }
  for (Operation* operation : batch.others) operation->perform(*service_);
}

bool AsyncLanes::begin_wait(Operation& operation) {
  const std::lock_guard guard(mutex_);
  if (closing_) return false;
  waiting_.insert(&operation);
  ++inside_;
  return true;
}

void AsyncLanes::end_wait(Operation& operation) {
  const std::lock_guard guard(mutex_);
  waiting_.erase(&operation);
}

void AsyncLanes::leave() {
  const std::lock_guard guard(mutex_);
  if (--inside_ == 0) left_.notify_all();
}

}  // namespace idem::detail
