// execute and shutdown: running the caller's action under a heartbeat.
#include <exception>

#include "service_impl.hpp"
#include "verdicts.hpp"

namespace idem::detail {
result<ExecuteOutcome> ServiceImpl::run(const Request& request, const Action& action,
                                        const CallOptions& options) {
  auto policy = prepare(request.key, options);
  if (!policy) return broken("execute", request.key, policy.error());
  auto claimed = policy->on_duplicate == OnDuplicate::wait
                     ? claim_or_wait(request, policy->wait, options)
                     : claim(request, options);
  if (!claimed) return std::move(claimed).error();
  if (auto* won = std::get_if<Claimed>(&*claimed)) {
    return act(std::move(won->lease), action, options);
  }
  return std::move(*without_running(std::move(*claimed)));
}

std::shared_ptr<Beat> ServiceImpl::begin_run(const Lease& lease) {
  // A bypass has no lease to keep, but a shutdown stops it all the same.
  auto beat = lease.state_->bypass ? std::make_shared<Beat>()
                                   : heartbeats_.start(lease.state_, lease.state_->sent);
  const std::lock_guard guard(runs_mutex_);
  runs_.insert(beat);
  if (shutting_down()) beat->stop.request_stop();
  return beat;
}

void ServiceImpl::end_run(const std::shared_ptr<Beat>& beat) {
  heartbeats_.end(beat);
  const std::lock_guard guard(runs_mutex_);
  runs_.erase(beat);
  runs_ended_.notify_all();
}

ExecuteOutcome ServiceImpl::give_up(const Lease& lease) {
  count(Counter::lost);
  if (options_.observer) options_.observer->on_lost(lease.request().key, lease.token());
  const std::lock_guard guard(lease.state_->mutex);
  lease.state_->reported = true;
  return Lost{};
}

result<ExecuteOutcome> ServiceImpl::act(Lease lease, const Action& action,
                                        const CallOptions& options) {
  const auto beat = begin_run(lease);
  std::optional<Verdict> verdict;
  try {
    Attempt attempt(lease, beat->stop.get_token());
    verdict = action(attempt);
  } catch (...) {
    if (!beat->lost) {
      // The caller hears of its own exception; that the record could not be told is the observer's.
      (void)fail(lease, FailKind::retryable, describe(std::current_exception()), Micros(0),
                 options);
    }
    end_run(beat);
    throw;
  }
  end_beat(beat);
  auto outcome = beat->lost ? result<ExecuteOutcome>(give_up(lease))
                            : report(lease, std::move(*verdict), options);
  end_run(beat);
  return outcome;
}

result<ExecuteOutcome> ServiceImpl::report(Lease& lease, Verdict verdict,
                                           const CallOptions& options) {
  verdict = of_attempt(std::move(verdict), lease.attempt());
  if (auto* text = std::get_if<std::string>(&verdict)) {
    auto done = complete(lease, *text, options);
    return after_complete(std::move(done), std::move(*text), lease.attempt());
  }
  if (std::holds_alternative<NothingDone>(verdict)) return after_release(release(lease, options));
  const Failing failing(std::move(verdict));
  return after_fail(fail(lease, failing.kind, failing.reason, failing.retry_after, options),
                    failing);
}

void ServiceImpl::shutdown(Duration grace) {
  shutting_down_ = true;
  hub_->stop();
  std::unique_lock lock(runs_mutex_);
  for (const auto& beat : runs_) beat->stop.request_stop();
  if (runs_.empty() || grace.micros() <= Micros(0)) return;
  // Woken by the end of the last action, or by the clock.
  bool over = false;
  const auto timers = clock_.timers();
  lock.unlock();
  const auto alarm = timers->call_at(clock_.now() + std::min(grace.micros(), kDurationMax), [&] {
    const std::lock_guard guard(runs_mutex_);
    over = true;
    runs_ended_.notify_all();
  });
  lock.lock();
  runs_ended_.wait(lock, [&] { return over || runs_.empty(); });
  lock.unlock();
  timers->cancel(alarm);
}

}  // namespace idem::detail
