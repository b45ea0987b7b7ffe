#include "idem/service.hpp"

#include "service_impl.hpp"

namespace idem {

std::string_view to_string(Counter counter) noexcept {
  switch (counter) {
    case Counter::claimed_fresh:
      return "claimed_fresh";
    case Counter::claimed_retry:
      return "claimed_retry";
    case Counter::claimed_takeover:
      return "claimed_takeover";
    case Counter::claimed_resumed:
      return "claimed_resumed";
    case Counter::claimed_bypass:
      return "claimed_bypass";
    case Counter::in_progress:
      return "in_progress";
    case Counter::replayed:
      return "replayed";
    case Counter::mismatched:
      return "mismatched";
    case Counter::backoff:
      return "backoff";
    case Counter::failed_before:
      return "failed_before";
    case Counter::exhausted:
      return "exhausted";
    case Counter::in_doubt:
      return "in_doubt";
    case Counter::already_done:
      return "already_done";
    case Counter::completed:
      return "completed";
    case Counter::completed_late:
      return "completed_late";
    case Counter::completed_already:
      return "completed_already";
    case Counter::failed:
      return "failed";
    case Counter::released:
      return "released";
    case Counter::renewed:
      return "renewed";
    case Counter::lost:
      return "lost";
    case Counter::conflict:
      return "conflict";
    case Counter::gone:
      return "gone";
    case Counter::dropped:
      return "dropped";
    case Counter::swept_abandoned:
      return "swept_abandoned";
    case Counter::swept_expired:
      return "swept_expired";
    case Counter::unknown_retried:
      return "unknown_retried";
    case Counter::errors:
      return "errors";
    case Counter::kCount:
      break;
  }
  return "?";
}

bool IdempotencyStore::watch(KeyRef /*key*/, std::function<void()> /*changed*/) { return false; }

IdempotencyService::IdempotencyService(StorePtr store, ServiceOptions options)
    : impl_(std::make_shared<detail::ServiceImpl>(std::move(store), std::move(options))) {}

IdempotencyService::~IdempotencyService() { impl_->shutdown(Micros(0)); }

result<ClaimOutcome> IdempotencyService::claim(const Request& request, const CallOptions& options) {
  return impl_->claim(request, options);
}

result<ClaimOutcome> IdempotencyService::claim_or_wait(const Request& request, Duration wait,
                                                       const CallOptions& options) {
  return impl_->claim_or_wait(request, wait, options);
}

result<WaitOutcome> IdempotencyService::wait(const Request& request, Duration wait,
                                             const CallOptions& options) {
  return impl_->wait(request, wait, options);
}

result<CompleteOutcome> IdempotencyService::complete(Lease& lease, std::string_view result,
                                                     const CallOptions& options) {
  return impl_->complete(lease, result, options);
}

result<FailOutcome> IdempotencyService::fail(Lease& lease, FailKind kind, std::string_view reason,
                                             Duration retry_after, const CallOptions& options) {
  return impl_->fail(lease, kind, reason, retry_after, options);
}

result<RenewOutcome> IdempotencyService::renew(Lease& lease, const CallOptions& options) {
  return impl_->renew(lease, options);
}

result<ReleaseOutcome> IdempotencyService::release(Lease& lease, const CallOptions& options) {
  return impl_->release(lease, options);
}

result<ExecuteOutcome> IdempotencyService::report(Lease& lease, Verdict verdict,
                                                  const CallOptions& options) {
  return impl_->report(lease, std::move(verdict), options);
}

std::vector<result<ClaimOutcome>> IdempotencyService::claim_many(std::span<const Request> requests,
                                                                 const CallOptions& options) {
  return impl_->claim_many(requests, options);
}

std::vector<result<CompleteOutcome>> IdempotencyService::complete_many(
    std::span<const CompleteItem> items, const CallOptions& options) {
  return impl_->complete_many(items, options);
}

result<ExecuteOutcome> IdempotencyService::run(const Request& request, const Action& action,
                                               const CallOptions& options) {
  // Kept alive here: an action may outlive the handle after a shutdown without grace.
  const auto impl = impl_;
  return impl->run(request, action, options);
}

result<Swept> IdempotencyService::sweep(std::size_t limit) { return impl_->sweep(limit); }

result<std::optional<Found>> IdempotencyService::get(KeyRef key) { return impl_->get(key); }

result<Page> IdempotencyService::list(const ListQuery& query) { return impl_->list(query); }

result<void> IdempotencyService::force_release(KeyRef key, std::uint64_t fence) {
  return impl_->administer(key, command::ForceRelease{fence});
}

result<void> IdempotencyService::force_fail(KeyRef key, std::uint64_t fence,
                                            std::string_view reason, FailKind kind) {
  return impl_->administer(
      key, command::ForceFail{fence, kind, reason, impl_->policy(key.biz_type).failed_ttl});
}

result<void> IdempotencyService::resolve(KeyRef key, std::uint64_t fence, const Resolution& found) {
  if (const auto* success = std::get_if<ResolveSuccess>(&found)) {
    return impl_->administer(key, command::ForceComplete{fence, success->result,
                                                         impl_->policy(key.biz_type).result_ttl});
  }
  const auto& failure = std::get<ResolveFailure>(found);
  return force_fail(key, fence, failure.reason, failure.kind);
}

void IdempotencyService::shutdown(Duration grace) { impl_->shutdown(grace); }

Counters IdempotencyService::counters() const { return impl_->counters(); }

IdempotencyStore& IdempotencyService::store() const { return impl_->store(); }

Clock& IdempotencyService::clock() const { return impl_->clock(); }

const Policy& IdempotencyService::policy(std::string_view biz_type) const {
  return impl_->policy(biz_type);
}

}  // namespace idem
