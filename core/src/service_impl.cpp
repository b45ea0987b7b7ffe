#include "service_impl.hpp"

namespace idem::detail {

ServiceImpl::ServiceImpl(StorePtr store, ServiceOptions options)
    : store_(std::move(store)),
      options_(std::move(options)),
      clock_(options_.clock != nullptr ? *options_.clock : system_clock()),
      hub_(std::make_shared<WaitHub>(store_, clock_)),
      heartbeats_(store_, clock_) {
  check_policy(options_.policy).value();
  for (const auto& [biz_type, patch] : options_.biz_types) {
    Policy policy = patch.apply_to(options_.policy);
    if (auto checked = check_policy(policy); !checked) {
      throw Exception(idem::fail(checked.error().code,
                                 "biz_type '" + biz_type + "': " + checked.error().message));
    }
    policies_.emplace(biz_type, std::move(policy));
  }
}

ServiceImpl::~ServiceImpl() { hub_->stop(); }

const Policy& ServiceImpl::policy(std::string_view biz_type) const {
  const auto found = policies_.find(biz_type);
  return found == policies_.end() ? options_.policy : found->second;
}

result<Policy> ServiceImpl::prepare(KeyRef key, const CallOptions& options) const {
  if (auto checked = check_key(key); !checked) return checked.error();
  return policy_for_call(policy(key.biz_type), options.policy);
}

DriveLimits ServiceImpl::limits(const CallOptions& options) const {
  const Micros timeout = options.timeout.value_or(options_.timeout);
  return {clock_, clock_.now() + std::min(timeout, kDurationMax)};
}

void ServiceImpl::drive(std::span<Call> calls, const DriveLimits& limits) {
  if (const std::uint64_t repeated = detail::drive(*store_, calls, limits)) {
    count(Counter::unknown_retried, repeated);
  }
}

Error ServiceImpl::broken(std::string_view verb, KeyRef key, Error error) {
  count(Counter::errors);
  if (options_.observer) options_.observer->on_error(verb, key, error);
  return error;
}

void ServiceImpl::dropped(const LeaseState& lease) noexcept {
  count(Counter::dropped);
  if (options_.observer) options_.observer->on_dropped(lease.request.key, lease.token());
}

}  // namespace idem::detail
