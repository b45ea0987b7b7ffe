#include "exchange.hpp"

#include <algorithm>

namespace idem::http {
namespace {

// A heartbeat at a third of the lease survives one lost renewal.
constexpr int kBeatsPerLease = 3;

}  // namespace

Exchange::Exchange(std::unique_ptr<State> state) : state_(std::move(state)) {}
Exchange::Exchange(Exchange&&) noexcept = default;
Exchange& Exchange::operator=(Exchange&&) noexcept = default;
Exchange::~Exchange() = default;

const Request& Exchange::request() const { return state_->lease.request(); }
std::uint64_t Exchange::fence() const { return state_->lease.fence(); }
std::uint32_t Exchange::attempt() const { return state_->lease.attempt(); }
ClaimKind Exchange::kind() const { return state_->lease.kind(); }

Exchange::State::State(std::shared_ptr<IdempotencyService> its_service, Lease its_lease,
                       Timers& timers)
    : service(std::move(its_service)),
      lease(std::move(its_lease)),
      timers_(timers),
      beat_(std::max(Micros(1000), lease.lease_left() / kBeatsPerLease)) {
  if (lease.kind() == ClaimKind::bypass) return;  // nothing is stored
  const std::lock_guard guard(mutex_);
  schedule();
}

void Exchange::State::stop_renewing() {
  std::optional<Timers::Id> alarm;
  {
    const std::lock_guard guard(mutex_);
    over_ = true;
    alarm = alarm_;
  }
  if (alarm) timers_.cancel(*alarm);
}

result<CompleteOutcome> Exchange::State::complete(std::string_view response) {
  CallOptions options;
  options.policy.max_result_bytes = response.size();
  return service->complete(lease, response, options);
}

void Exchange::State::renew() {
  const std::lock_guard guard(mutex_);
  if (over_) return;
  const auto renewed = service->renew(lease);
  // An error leaves the lease in doubt, not lost: the next beat tries again.
  if (!renewed || std::holds_alternative<Renewed>(*renewed)) {
    schedule();
  } else {
    alarm_.reset();
  }
}

void Exchange::State::schedule() {
  alarm_ = timers_.call_at(service->clock().now() + beat_, [this] { renew(); });
}

}  // namespace idem::http
