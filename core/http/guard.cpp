#include <algorithm>

#include "exchange.hpp"
#include "idem/http.hpp"
#include "problem.hpp"
#include "unreported.hpp"

namespace idem::http {
namespace {

// Until when to come back where nobody can know better.
constexpr Micros kComeBackSoon = std::chrono::seconds(1);

Answer answer_of_error(const Error& error) {
  if (error.code == errc::invalid_argument) return answer_of(Reason::bad_scope);
  if (error.code == errc::corrupt) return answer_of(Reason::result_corrupt);
  Answer answer =
      answer_of(Reason::store_unavailable,
                error.code == errc::unknown
                    ? "Nothing was done, but the key may have been taken down: for a "
                      "while it may be answered 409. Send the same request again later, "
                      "with the same key."
                    : "Nothing was done now; whether an earlier request with this key "
                      "took effect is not known here. Send the same request again "
                      "later, with the same key.");
  answer.response.headers.push_back({"Retry-After", retry_after_seconds(kComeBackSoon)});
  return answer;
}

Answer answer_later(Reason reason, Micros left) {
  Answer answer = answer_of(reason);
  answer.retry_after = left;
  answer.response.headers.push_back({"Retry-After", retry_after_seconds(left)});
  return answer;
}

}  // namespace

Guard::Guard(std::shared_ptr<IdempotencyService> service, Policy policy, StoreErrors errors)
    : service_(std::move(service)),
      policy_(std::move(policy)),
      errors_(errors),
      renewals_(service_->clock().timers()),
      unreported_(std::make_unique<Unreported>(service_->clock())) {
  if (const auto checked = check_policy(policy_); !checked) throw Exception(checked.error());
}

Guard::~Guard() = default;

Reading Guard::read(const RequestView& request) const {
  const KeyUse use = request.key.value_or(policy_.key);
  if (use == KeyUse::off) return Pass{};
  const auto bad_request = [&](Reason reason, std::string_view detail) {
    Answer answer = answer_of(reason, detail);
    if (!policy_.documentation.empty()) {
      answer.response.headers.push_back(
          {"Link", "<" + policy_.documentation + ">; rel=\"describedby\""});
    }
    return answer;
  };
  const HeaderView* line = nullptr;
  for (const HeaderView& header : request.headers) {
    if (!same_header(header.name, policy_.key_header)) continue;
    if (line != nullptr) {
      return bad_request(Reason::key_malformed, "Several header lines carry a key.");
    }
    line = &header;
  }
  if (line == nullptr) {
    if (use == KeyUse::optional) return Pass{};
    return bad_request(Reason::key_missing, {});
  }
  auto key = parse_key(line->value, policy_.strict);
  if (const auto* wrong = std::get_if<KeyProblem>(&key)) {
    return bad_request(wrong->reason, wrong->detail);
  }
  return Request{{std::string(request.tenant), std::string(request.biz_type),
                  std::move(std::get<std::string>(key))},
                 fingerprint_of(request.method, request.target, request.body)};
}

Decision Guard::begin(const RequestView& view) {
  Reading reading = read(view);
  if (auto* answer = std::get_if<Answer>(&reading)) return std::move(*answer);
  const auto* request = std::get_if<Request>(&reading);
  if (request == nullptr) return Pass{};
  const idem::Policy& policy = service_->policy(request->key.biz_type);
  if (policy.on_duplicate == OnDuplicate::reject) return claim(*request);
  return decide(*request, service_->claim_or_wait(*request, policy.wait));
}

Decision Guard::claim(const Request& request, const CallOptions& options) {
  return decide(request, service_->claim(request, options));
}

Decision Guard::decide(const Request& request, result<ClaimOutcome> claimed) {
  if (!claimed && errors_ == StoreErrors::thrown) throw Exception(claimed.error());
  if (!claimed) return answer_of_error(claimed.error());
  struct Visitor {
    Guard& guard;
    const Request& request;

    Decision operator()(Claimed& won) const {
      return Proceed{Exchange(std::make_unique<Exchange::State>(
          guard.service_, std::move(won.lease), *guard.renewals_))};
    }
    Decision operator()(const Replay& first) const {
      // The service stores a digest instead of a result that its policy finds too large.
      if (!first.retained) return answer_of(Reason::result_corrupt, "It was too large to keep.");
      return guard.replay(request, first.result, false);
    }
    Decision operator()(const Failed& failed) const {
      return guard.replay(request, failed.reason, true);
    }
    Decision operator()(const AlreadyDone&) const {
      return Answer{{204, {{guard.policy_.replayed_header, "true"}}, {}}, Reason::already_done, {}};
    }
    Decision operator()(const InProgress& other) const {
      return answer_later(Reason::in_progress, other.retry_after);
    }
    Decision operator()(const Backoff& backoff) const {
      return answer_later(Reason::retry_later, backoff.retry_after);
    }
    Decision operator()(const Mismatch&) const { return answer_of(Reason::key_reused); }
    Decision operator()(const Exhausted&) const { return answer_of(Reason::attempts_exhausted); }
    Decision operator()(const InDoubt&) const { return answer_of(Reason::in_doubt); }
  };
  return std::visit(Visitor{*this, request}, *claimed);
}

Answer Guard::replay(const Request& request, std::string_view stored, bool failure) const {
  if (!is_stored_response(stored)) {
    // A failure's reason that somebody else wrote is for people inside, not for clients.
    if (failure) return answer_of(Reason::failed);
    // A result that a person or another program found out (resolve, `idem key complete`).
    Response found{200, {{"Content-Type", "application/octet-stream"}}, std::string(stored)};
    found.headers.push_back({policy_.replayed_header, "true"});
    return {std::move(found), Reason::replayed, {}};
  }
  auto decoded = decode_response(stored);
  if (!decoded) return answer_of(Reason::result_corrupt);
  Response response = std::move(decoded->response);
  if (!decoded->body_kept) {
    response = problem(response.status, "body_not_kept", "The first response was too large to keep",
                       "Its status is shown, its body is not.");
  }
  response.headers.push_back({policy_.replayed_header, "true"});
  if (!failure) add_ttl(request, response.headers);
  return {std::move(response), failure ? Reason::failed : Reason::replayed, {}};
}

Finished Guard::finish(Exchange exchange, const ResponseView& response) {
  exchange.state_->stop_renewing();
  return is_retryable_status(response.status) ? fail(*exchange.state_, response)
                                              : complete(std::move(exchange), response);
}

Finished Guard::complete(Exchange exchange, const ResponseView& response) {
  Exchange::State& state = *exchange.state_;
  const Request& request = state.lease.request();
  const std::uint64_t bytes_max = std::min(service_->policy(request.key.biz_type).max_result_bytes,
                                           service_->store().capabilities().result_bytes_max);
  std::string text = encode_response(response, policy_.stored_headers, bytes_max);
  const auto done = state.complete(text);
  Finished finished;
  if (!done && errors_ == StoreErrors::thrown) throw Exception(done.error());
  if (!done) {
    if (Unreported::may_succeed_later(done.error()))
      unreported_->keep(std::move(exchange.state_), std::move(text));
    return finished;
  }
  if (std::holds_alternative<Completed>(*done)) {
    if (state.lease.kind() != ClaimKind::bypass) add_ttl(request, finished.add);
  } else if (const auto* lost = std::get_if<Lost>(&*done)) {
    finished.instead = lost->result ? replay(request, *lost->result, false).response
                                    : answer_later(Reason::in_progress, kComeBackSoon).response;
  } else if (const auto* conflict = std::get_if<Conflict>(&*done)) {
    finished.instead = replay(request, conflict->result, false).response;
  } else if (std::holds_alternative<NotProcessing>(*done)) {
    finished.instead = answer_of(Reason::failed).response;
  }
  return finished;
}

Finished Guard::fail(Exchange::State& state, const ResponseView& response) {
  const std::string reason = encode_response(response, policy_.stored_headers, kReasonBytesMax);
  const auto failed = service_->fail(state.lease, FailKind::retryable, reason);
  Finished finished;
  if (!failed && errors_ == StoreErrors::thrown) throw Exception(failed.error());
  if (!failed) return finished;
  if (const auto* lost = std::get_if<Lost>(&*failed); lost != nullptr && lost->result) {
    finished.instead = replay(state.lease.request(), *lost->result, false).response;
  }
  return finished;
}

void Guard::fail(Exchange exchange, std::string_view reason) {
  exchange.state_->stop_renewing();
  // What cannot be told to the store is told to the observer; the lease ends by itself.
  (void)service_->fail(exchange.state_->lease, FailKind::retryable, reason);
}

void Guard::release(Exchange exchange) {
  exchange.state_->stop_renewing();
  (void)service_->report(exchange.state_->lease, NothingDone{});
}

void Guard::hold(Exchange exchange) { exchange.state_->stop_renewing(); }

std::size_t Guard::unreported() const { return unreported_->size(); }

void Guard::add_ttl(const Request& request, std::vector<Header>& headers) const {
  if (policy_.ttl_header.empty()) return;
  const auto ttl = std::chrono::floor<std::chrono::seconds>(
      service_->policy(request.key.biz_type).result_ttl.micros());
  headers.push_back({policy_.ttl_header, std::to_string(ttl.count())});
}

}  // namespace idem::http
