// claim, claim_many, wait, claim_or_wait.
#include <set>

#include "service_impl.hpp"

namespace idem::detail {

// One claim under way. Stays where it is: `call` points into it.
struct ServiceImpl::ClaimPlan {
  const Request* request = nullptr;
  Policy policy;
  Command command;
  Time sent{};
};

result<ClaimOutcome> ServiceImpl::claim(const Request& request, const CallOptions& options) {
  if (shutting_down()) return broken("claim", request.key, shutting_down_error());
  auto policy = prepare(request.key, options);
  if (!policy) return broken("claim", request.key, policy.error());
  if (!policy->enabled) return bypass(request, *policy);
  ClaimPlan plan{&request, *policy,
                 command::Claim{request.fingerprint,
                                options.owner ? *options.owner : Owner::random(), *policy},
                 clock_.now()};
  Call call;
  call.key = request.key;
  call.command = &plan.command;
  drive({&call, 1}, limits(options));
  return finish_claim(plan, call);
}

std::vector<result<ClaimOutcome>> ServiceImpl::claim_many(std::span<const Request> requests,
                                                          const CallOptions& options) {
  CallOptions of_later = options;  // a given owner token is for the first of equal keys
  of_later.owner.reset();
  std::set<KeyRef> seen;
  std::vector<ClaimItem> items;
  items.reserve(requests.size());
  for (const Request& request : requests) {
    items.push_back({&request, seen.insert(request.key).second ? &options : &of_later});
  }
  claim_each(items);
  std::vector<result<ClaimOutcome>> answers;
  answers.reserve(items.size());
  for (ClaimItem& item : items) answers.push_back(std::move(item.answer));
  return answers;
}

void ServiceImpl::claim_each(std::span<ClaimItem> items) {
  std::vector<ClaimPlan> plans;
  plans.reserve(items.size());
  std::vector<ClaimItem*> planned;
  for (ClaimItem& item : items) {
    const Request& request = *item.request;
    if (shutting_down()) {
      item.answer = broken("claim", request.key, shutting_down_error());
      continue;
    }
    auto policy = prepare(request.key, *item.options);
    if (!policy) {
      item.answer = broken("claim", request.key, policy.error());
      continue;
    }
    if (!policy->enabled) {
      item.answer = bypass(request, *policy);
      continue;
    }
    const Owner owner = item.options->owner ? *item.options->owner : Owner::random();
    plans.push_back(
        {&request, *policy, command::Claim{request.fingerprint, owner, *policy}, clock_.now()});
    planned.push_back(&item);
  }
  std::vector<Call> calls(plans.size());
  for (std::size_t i = 0; i < plans.size(); ++i) {
    calls[i].key = plans[i].request->key;
    calls[i].command = &plans[i].command;
    calls[i].deadline = limits(*planned[i]->options).deadline;
  }
  drive(calls, {clock_, Time::max()});
  for (std::size_t i = 0; i < plans.size(); ++i) {
    planned[i]->answer = finish_claim(plans[i], calls[i]);
  }
}

result<ClaimOutcome> ServiceImpl::finish_claim(const ClaimPlan& plan, Call& call) {
  const Request& request = *plan.request;
  if (!call.answer) return broken("claim", request.key, std::move(call.answer).error());
  if (const auto* granted = std::get_if<Granted>(&*call.answer)) {
    ClaimOutcome outcome(Claimed{make_lease(request, plan.policy, *granted, call.written)});
    std::get<Claimed>(outcome).lease.state_->sent = plan.sent;
    count_claim(request.key, outcome, granted);
    return outcome;
  }
  auto outcome = narrow<ClaimOutcome>(std::move(*call.answer));
  if (outcome) count_claim(request.key, *outcome, nullptr);
  return outcome;
}

Lease ServiceImpl::make_lease(const Request& request, const Policy& policy, const Granted& granted,
                              const Record& written) {
  auto state = std::make_shared<LeaseState>();
  state->service = weak_from_this();
  state->request = request;
  state->policy = policy;
  state->kind = granted.kind;
  state->previous_fence = granted.previous_fence;
  state->bypass = granted.kind == ClaimKind::bypass;
  state->known = written;
  state->known_at = granted.claimed_at;
  state->believed = true;
  return Lease(std::move(state));
}

ClaimOutcome ServiceImpl::bypass(const Request& request, const Policy& policy) {
  Granted granted;
  granted.kind = ClaimKind::bypass;
  granted.token = {Owner::random(), 0};
  granted.claimed_at = clock_.now();
  granted.lease_until = granted.claimed_at + policy.lease.micros();
  Record record;
  record.request_hash = request.fingerprint;
  record.owner = granted.token.owner;
  record.attempt = 1;
  record.lease_until = granted.lease_until;
  ClaimOutcome outcome(Claimed{make_lease(request, policy, granted, record)});
  count_claim(request.key, outcome, &granted);
  return outcome;
}

namespace {

Counter counter_of(ClaimKind kind) {
  switch (kind) {
    case ClaimKind::fresh:
      return Counter::claimed_fresh;
    case ClaimKind::retry:
      return Counter::claimed_retry;
    case ClaimKind::takeover:
      return Counter::claimed_takeover;
    case ClaimKind::resumed:
      return Counter::claimed_resumed;
    case ClaimKind::bypass:
      return Counter::claimed_bypass;
  }
  return Counter::errors;
}

struct CounterOf {
  Counter operator()(const Claimed& claimed) const { return counter_of(claimed.lease.kind()); }
  Counter operator()(const InProgress&) const { return Counter::in_progress; }
  Counter operator()(const Replay&) const { return Counter::replayed; }
  Counter operator()(const Mismatch&) const { return Counter::mismatched; }
  Counter operator()(const Backoff&) const { return Counter::backoff; }
  Counter operator()(const Failed&) const { return Counter::failed_before; }
  Counter operator()(const Exhausted&) const { return Counter::exhausted; }
  Counter operator()(const InDoubt&) const { return Counter::in_doubt; }
  Counter operator()(const AlreadyDone&) const { return Counter::already_done; }
};

// A wait's answer as a claim's; nullopt: claim again.
std::optional<ClaimOutcome> as_claim_outcome(WaitOutcome&& waited) {
  return std::visit(
      [](auto&& one) -> std::optional<ClaimOutcome> {
        if constexpr (std::is_same_v<std::decay_t<decltype(one)>, Claimable>) {
          return std::nullopt;
        } else {
          return ClaimOutcome(std::forward<decltype(one)>(one));
        }
      },
      std::move(waited));
}

}  // namespace

void ServiceImpl::count_claim(KeyRef key, const ClaimOutcome& outcome, const Granted* granted) {
  count(std::visit(CounterOf{}, outcome));
  if (granted == nullptr) return;
  if (options_.observer) options_.observer->on_claimed(key, *granted);
  // An insert is no change that a store's watch tells of; a waiter of ours need not know either: it
  // waits for the end of the lease, which it reads at its next turn.
}

result<WaitOutcome> ServiceImpl::wait(const Request& request, Duration wait,
                                      const CallOptions& options) {
  if (shutting_down()) return broken("wait", request.key, shutting_down_error());
  auto policy = prepare(request.key, options);
  if (!policy) return broken("wait", request.key, policy.error());
  if (!policy->enabled) return WaitOutcome(Claimable{});
  return finish_wait(request,
                     hub_->wait(request.key, {request.fingerprint, *policy, false}, until(wait)));
}

Time ServiceImpl::until(Duration wait) const {
  return clock_.now() + std::clamp(wait.micros(), Micros(0), kDurationMax);
}

result<WaitOutcome> ServiceImpl::finish_wait(const Request& request, result<Outcome> answer) {
  if (!answer && answer.error().code == errc::cancelled) return std::move(answer).error();
  if (!answer) return broken("wait", request.key, std::move(answer).error());
  return narrow<WaitOutcome>(std::move(*answer));
}

WaitHub::Ticket ServiceImpl::start_wait(const Request& request, Time deadline,
                                        const CallOptions& options, bool will_claim,
                                        std::function<void(result<WaitOutcome>)> done) {
  auto policy = prepare(request.key, options);
  if (shutting_down() || !policy) {
    done(broken("wait", request.key, policy ? shutting_down_error() : policy.error()));
    return nullptr;
  }
  if (!policy->enabled) {
    done(WaitOutcome(Claimable{}));
    return nullptr;
  }
  return hub_->start(request.key, {request.fingerprint, *policy, will_claim}, deadline,
                     [this, &request, done = std::move(done)](result<Outcome> answer) {
                       done(finish_wait(request, std::move(answer)));
                     });
}

bool ServiceImpl::worth_waiting(const result<ClaimOutcome>& claimed, Time deadline) const {
  if (!claimed || clock_.now() >= deadline) return false;
  const auto* backoff = std::get_if<Backoff>(&*claimed);
  return std::holds_alternative<InProgress>(*claimed) ||
         (backoff != nullptr && clock_.now() + backoff->retry_after < deadline);
}

std::optional<result<ClaimOutcome>> ServiceImpl::claim_after(result<WaitOutcome> waited) {
  if (!waited) return std::move(waited).error();
  auto final = as_claim_outcome(std::move(*waited));
  if (!final) return std::nullopt;
  count(std::visit(CounterOf{}, *final));
  return std::move(*final);
}

result<ClaimOutcome> ServiceImpl::claim_or_wait(const Request& request, Duration wait,
                                                const CallOptions& options) {
  const Time deadline = until(wait);
  for (;;) {
    auto claimed = claim(request, options);
    if (!worth_waiting(claimed, deadline)) return claimed;
    auto policy = prepare(request.key, options);
    if (!policy) return policy.error();
    auto waited = finish_wait(
        request, hub_->wait(request.key, {request.fingerprint, *policy, true}, deadline));
    if (auto final = claim_after(std::move(waited))) return std::move(*final);
  }
}

}  // namespace idem::detail
