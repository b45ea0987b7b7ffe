#include "heartbeats.hpp"

#include <algorithm>
#include <vector>

#include "idem/lease_margin.hpp"

namespace idem::detail {
namespace {

Micros rhythm(Micros lease) { return std::max(lease / 3, Micros(1)); }

}  // namespace

Heartbeats::Heartbeats(StorePtr store, Clock& clock)
    : store_(std::move(store)),
      clock_(clock),
      renewals_(clock.timers()),
      deadlines_(clock.timers()) {}

std::shared_ptr<Beat> Heartbeats::start(std::shared_ptr<LeaseState> lease, Time sent) {
  const auto beat = std::make_shared<Beat>();
  beat->lease = std::move(lease);
  {
    const std::lock_guard guard(mutex_);
    beat->sent = sent;
    beat->next = sent + rhythm(beat->lease->policy.lease);
    beats_.emplace(beat, 0);
  }
  arm_deadline(beat);
  schedule();
  return beat;
}

void Heartbeats::end(const std::shared_ptr<Beat>& beat) {
  Timers::Id alarm = 0;
  {
    const std::lock_guard guard(mutex_);
    const auto found = beats_.find(beat);
    if (found == beats_.end()) return;
    alarm = found->second;
    beats_.erase(found);
  }
  deadlines_->cancel(alarm);
}

void Heartbeats::arm_deadline(const std::shared_ptr<Beat>& beat) {
  Timers::Id old = 0;
  Time at{};
  {
    const std::lock_guard guard(mutex_);
    const auto found = beats_.find(beat);
    if (found == beats_.end()) return;
    old = std::exchange(found->second, 0);
    const Micros lease = beat->lease->policy.lease;
    at = beat->sent + (lease - lease_margin(lease));
    beat->lease->safe_until = at;
  }
  deadlines_->cancel(old);
  const Timers::Id alarm = deadlines_->call_at(at, [beat] {
    beat->lost = true;
    beat->stop.request_stop();
  });
  {
    const std::lock_guard guard(mutex_);
    const auto found = beats_.find(beat);
    if (found != beats_.end()) {
      found->second = alarm;
      return;
    }
  }
  deadlines_->cancel(alarm);  // ended meanwhile
}

void Heartbeats::schedule() {
  Time next{};
  {
    const std::lock_guard guard(mutex_);
    if (beats_.empty()) return;
    next = std::min_element(beats_.begin(), beats_.end(), [](const auto& a, const auto& b) {
             return a.first->next < b.first->next;
           })->first->next;
    if (next == Time::max() || (scheduled_at_ && *scheduled_at_ <= next)) return;
    scheduled_at_ = next;
  }
  renewals_->call_at(next, [this, next] {
    {
      const std::lock_guard guard(mutex_);
      if (scheduled_at_ == next) scheduled_at_.reset();
    }
    renew_due();
  });
}

void Heartbeats::renew_due() {
  struct Renewal {
    std::shared_ptr<Beat> beat;
    Record known;
    Time known_at;
    Command command;
  };
  const Time now = clock_.now();
  std::vector<Renewal> due;
  {
    const std::lock_guard guard(mutex_);
    for (auto& [beat, alarm] : beats_) {
      if (beat->next > now || beat->lost) continue;
      // Asked again soon if this renewal brings no definite answer.
      beat->next = now + std::max(beat->lease->policy.lease.micros() / 10, Micros(1));
      due.push_back({beat, {}, {}, {}});
    }
    // A stopped action is not renewed: it sleeps until its beat ends.
    for (auto& [beat, alarm] : beats_) {
      if (beat->lost) beat->next = Time::max();
    }
  }
  std::vector<Call> calls(due.size());
  for (std::size_t i = 0; i < due.size(); ++i) {
    const LeaseState& lease = *due[i].beat->lease;
    {
      const std::lock_guard guard(lease.mutex);
      due[i].known = lease.known;
      due[i].known_at = lease.known_at;
    }
    due[i].command = command::Renew{due[i].known.token(), lease.policy.lease, lease.policy};
    calls[i].key = lease.request.key;
    calls[i].command = &due[i].command;
    calls[i].known = &due[i].known;
    calls[i].known_at = due[i].known_at;
    calls[i].load_first = lease.policy.max_total_lease.has_value();
  }
  // One try: a doubtful renewal is simply asked again at the next beat.
  if (!calls.empty()) drive(*store_, calls, {clock_, now});
  for (std::size_t i = 0; i < due.size(); ++i) settle(due[i].beat, calls[i], now);
  schedule();
}

void Heartbeats::settle(const std::shared_ptr<Beat>& beat, const Call& call, Time sent) {
  if (!call.answer) return;  // not reached, or in doubt: the safe deadline guards the action
  if (std::holds_alternative<Renewed>(*call.answer)) {
    beat->lease->learn(call.written, call.now);
    {
      const std::lock_guard guard(mutex_);
      beat->sent = sent;
      beat->next = sent + rhythm(beat->lease->policy.lease);
    }
    arm_deadline(beat);
    return;
  }
  {
    const std::lock_guard guard(mutex_);
    if (!beats_.contains(beat)) return;  // the action had just reported
    beat->next = Time::max();
  }
  // The lease may be prolonged no more, but still runs: the safe deadline will end it.
  if (std::holds_alternative<RenewRefused>(*call.answer)) return;
  beat->lost = true;
  beat->stop.request_stop();
}

}  // namespace idem::detail
