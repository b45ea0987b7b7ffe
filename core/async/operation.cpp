#include "operation.hpp"

#include "lanes.hpp"

namespace idem::detail {

void Operation::perform(ServiceImpl& /*service*/) {}

bool Operation::gather(Batch& batch) {
  {
    const std::lock_guard guard(mutex_);
    if (state_ != State::queued) return false;
    state_ = State::running;
  }
  add_to(batch);
  return true;
}

void Operation::executed(AsyncLanes& lanes) {
  {
    const std::lock_guard guard(mutex_);
    if (state_ != State::running) return;
  }
  settle(lanes);
}

void Operation::cancel(ServiceImpl& service) {
  WaitHub::Ticket ticket;
  {
    const std::lock_guard guard(mutex_);
    cancelled_ = true;
    if (state_ == State::waiting) ticket = ticket_;
    if (state_ != State::queued && !ticket) return;
    if (state_ == State::queued) state_ = State::running;  // ours to end; no lane takes it any more
  }
  if (ticket) {
    service.cancel_wait(ticket, cancelled_error());
  } else {
    finish_cancelled();
  }
}

bool Operation::end() {
  const std::lock_guard guard(mutex_);
  return std::exchange(state_, State::over) != State::over;
}

bool Operation::queue_again() {
  {
    const std::lock_guard guard(mutex_);
    if (!cancelled_) {
      state_ = State::queued;
      return true;
    }
  }
  finish_cancelled();
  return false;
}

void Operation::wait(AsyncLanes& lanes, const Request& request, Time deadline,
                     const CallOptions& options, bool will_claim) {
  std::uint64_t number = 0;
  bool cancelled = false;
  {
    const std::lock_guard guard(mutex_);
    cancelled = cancelled_;
    state_ = State::waiting;
    number = ++waits_;
  }
  if (cancelled || !lanes.begin_wait(*this)) return finish_cancelled();
  const auto ticket = lanes.service().start_wait(
      request, deadline, options, will_claim,
      [self = shared_from_this(), &lanes](result<WaitOutcome> answer) mutable {
        const auto mine = std::move(self);  // the hub may keep this function for a while
        lanes.end_wait(*mine);
        {
          const std::lock_guard guard(mine->mutex_);
          mine->state_ = State::running;
          mine->ticket_.reset();
        }
        mine->waited(lanes, std::move(answer));
        lanes.leave();
      });
  {
    const std::lock_guard guard(mutex_);
    if (state_ != State::waiting || waits_ != number) return;  // told already
    ticket_ = ticket;
    if (!cancelled_) return;
  }
  lanes.service().cancel_wait(ticket, cancelled_error());
}

void Operation::waited(AsyncLanes& /*lanes*/, result<WaitOutcome> /*answer*/) {}

}  // namespace idem::detail
