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
  std::vector<result<ClaimOutcome>> answers;
  answers.reserve(requests.size());
  for (std::size_t i = 0; i < requests.size(); ++i) {
    answers.emplace_back(idem::fail(errc::internal, "not driven"));
  }
  std::vector<ClaimPlan> plans;
  plans.reserve(requests.size());
  std::vector<std::size_t> places;  // of each plan's item
  std::set<KeyRef> seen;
  for (std::size_t i = 0; i < requests.size(); ++i) {
    const Request& request = requests[i];
    if (shutting_down()) {
      answers[i] = broken("claim", request.key, shutting_down_error());
      continue;
    }
    auto policy = prepare(request.key, options);
    if (!policy) {
      answers[i] = broken("claim", request.key, policy.error());
      continue;
    }
    if (!policy->enabled) {
      answers[i] = bypass(request, *policy);
      continue;
    }
    // A given owner token is for the first of equal keys; the later ones are other attempts.
    const bool first = seen.insert(request.key).second;
    const Owner owner = options.owner && first ? *options.owner : Owner::random();
    plans.push_back(
        {&request, *policy, command::Claim{request.fingerprint, owner, *policy}, clock_.now()});
    places.push_back(i);
  }
  std::vector<Call> calls(plans.size());
  for (std::size_t i = 0; i < plans.size(); ++i) {
    calls[i].key = plans[i].request->key;
    calls[i].command = &plans[i].command;
  }
  drive(calls, limits(options));
  for (std::size_t i = 0; i < plans.size(); ++i)
    answers[places[i]] = finish_claim(plans[i], calls[i]);
  return answers;
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
  const Time deadline = clock_.now() + std::clamp(wait.micros(), Micros(0), kDurationMax);
  auto answer = hub_->wait(request.key, {request.fingerprint, *policy, false}, deadline);
  if (!answer) return broken("wait", request.key, answer.error());
  return narrow<WaitOutcome>(std::move(*answer));
}

result<ClaimOutcome> ServiceImpl::claim_or_wait(const Request& request, Duration wait,
                                                const CallOptions& options) {
  const Time deadline = clock_.now() + std::clamp(wait.micros(), Micros(0), kDurationMax);
  for (;;) {
    auto claimed = claim(request, options);
    if (!claimed) return claimed;
    const auto* backoff = std::get_if<Backoff>(&*claimed);
    const bool waits = std::holds_alternative<InProgress>(*claimed) ||
                       (backoff != nullptr && clock_.now() + backoff->retry_after < deadline);
    if (!waits || clock_.now() >= deadline) return claimed;
    auto policy = prepare(request.key, options);
    if (!policy) return policy.error();
    auto answer = hub_->wait(request.key, {request.fingerprint, *policy, true}, deadline);
    if (!answer) return broken("wait", request.key, answer.error());
    auto waited = narrow<WaitOutcome>(std::move(*answer));
    if (!waited) return waited.error();
    if (auto final = as_claim_outcome(std::move(*waited))) {
      count(std::visit(CounterOf{}, *final));
      return std::move(*final);
    }
  }
}

}  // namespace idem::detail
