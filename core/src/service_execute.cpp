// execute and shutdown: running the caller's action under a heartbeat.
#include <exception>

#include "service_impl.hpp"

namespace idem::detail {
namespace {

// Everything a claim may answer but Claimed is an answer of execute, too.
std::optional<ExecuteOutcome> without_running(ClaimOutcome&& claimed) {
  return std::visit(
      [](auto&& one) -> std::optional<ExecuteOutcome> {
        if constexpr (std::is_same_v<std::decay_t<decltype(one)>, Claimed>) {
          return std::nullopt;
        } else {
          return ExecuteOutcome(std::forward<decltype(one)>(one));
        }
      },
      std::move(claimed));
}

// "exception: <what>", for the record of an attempt that threw.
std::string describe_current_exception() {
  try {
    throw;
  } catch (const std::exception& error) {
    return std::string("exception: ") + error.what();
  } catch (...) {
    return "exception: not derived from std::exception";
  }
}

}  // namespace

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

result<ExecuteOutcome> ServiceImpl::act(Lease lease, const Action& action,
                                        const CallOptions& options) {
  const bool bypass = lease.state_->bypass;
  // A bypass has no lease to keep, but a shutdown stops it all the same.
  const auto beat =
      bypass ? std::make_shared<Beat>() : heartbeats_.start(lease.state_, lease.state_->sent);
  {
    const std::lock_guard guard(runs_mutex_);
    runs_.insert(beat);
    if (shutting_down()) beat->stop.request_stop();
  }
  const auto over = [&] {
    heartbeats_.end(beat);
    const std::lock_guard guard(runs_mutex_);
    runs_.erase(beat);
    runs_ended_.notify_all();
  };
  std::optional<Verdict> verdict;
  try {
    Attempt attempt(lease, beat->stop.get_token());
    verdict = action(attempt);
  } catch (...) {
    if (!beat->lost) {
      // The caller hears of its own exception; that the record could not be told is the observer's.
      (void)fail(lease, FailKind::retryable, describe_current_exception(), Micros(0), options);
    }
    over();
    throw;
  }
  heartbeats_.end(beat);
  if (beat->lost) {
    // What the action returned after its stop counts for nothing, even if nobody took over.
    over();
    count(Counter::lost);
    if (options_.observer) options_.observer->on_lost(lease.request().key, lease.token());
    {
      const std::lock_guard guard(lease.state_->mutex);
      lease.state_->reported = true;
    }
    return ExecuteOutcome(Lost{});
  }
  auto outcome = report(lease, std::move(*verdict), options);
  over();
  return outcome;
}

result<ExecuteOutcome> ServiceImpl::report(Lease& lease, Verdict verdict,
                                           const CallOptions& options) {
  if (auto* text = std::get_if<std::string>(&verdict)) {
    auto done = complete(lease, *text, options);
    if (!done) return done.error();
    if (const auto* completed = std::get_if<Completed>(&*done)) {
      return ExecuteOutcome(Executed{std::move(*text), completed->late, lease.attempt()});
    }
    if (auto* lost = std::get_if<Lost>(&*done)) return ExecuteOutcome(std::move(*lost));
    if (auto* conflict = std::get_if<Conflict>(&*done)) {
      return ExecuteOutcome(Lost{std::move(conflict->result)});
    }
    return ExecuteOutcome(Lost{});  // swept, failed or removed by others meanwhile
  }
  if (std::holds_alternative<NothingDone>(verdict)) {
    auto released = release(lease, options);
    if (!released) return released.error();
    if (std::holds_alternative<Released>(*released)) return ExecuteOutcome(Released{});
    return ExecuteOutcome(Lost{});
  }
  const auto* retryable = std::get_if<Retryable>(&verdict);
  const FailKind kind = retryable != nullptr ? FailKind::retryable : FailKind::final;
  std::string reason = retryable != nullptr ? retryable->reason : std::get<Final>(verdict).reason;
  auto failed = fail(lease, kind, reason,
                     retryable != nullptr ? retryable->retry_after : Duration(), options);
  if (!failed) return failed.error();
  if (auto* lost = std::get_if<Lost>(&*failed)) return ExecuteOutcome(std::move(*lost));
  if (!std::holds_alternative<FailRecorded>(*failed)) return ExecuteOutcome(Lost{});
  return ExecuteOutcome(ActionFailed{std::move(reason), kind});
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
