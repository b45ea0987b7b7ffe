#include "micro/callers.hpp"

namespace idem::bench {
namespace {

using namespace std::chrono_literals;

Claim classify(const Answer& answer) {
  if (answer.state == Answer::State::written) return Claim::won;
  if (answer.state != Answer::State::stands) return Claim::error;
  return answer.held.status == Status::success ? Claim::replayed : Claim::in_progress;
}

}  // namespace

Fingerprint benchmark_fingerprint() {
  static const Fingerprint kOnce = Fingerprint::of_bytes("a request");
  return kOnce;
}

std::string_view benchmark_result() {
  return "{\"payment\":\"P-2024-000042\",\"state\":\"PAID\",\"amount\":\"100.00 CNY\"}";
}

StoreCaller::StoreCaller() {
  insert_.draft.request_hash = benchmark_fingerprint();
  insert_.draft.owner = Owner::random();
  insert_.draft.lease = 30s;
  insert_.draft.keep = 24h;
  replace_.draft = insert_.draft;
  replace_.draft.status = Status::success;
  replace_.draft.fresh = false;
  replace_.draft.lease = 0s;
  replace_.draft.result = benchmark_result();
}

Claim StoreCaller::claim(IdempotencyStore& store, KeyRef key) {
  insert_.key = key;
  store.insert({&insert_, 1});
  return classify(insert_.answer);
}

bool StoreCaller::complete(IdempotencyStore& store) {
  replace_.key = insert_.key;
  replace_.expected = insert_.answer.held.version;
  replace_.draft.fence = insert_.answer.held.fence;
  store.replace({&replace_, 1});
  return replace_.answer.state == Answer::State::written;
}

ServiceCaller::ServiceCaller() { request_.fingerprint = benchmark_fingerprint(); }

Claim ServiceCaller::claim(IdempotencyService& service, KeyRef key) {
  request_.key.key.assign(key.key);
  auto outcome = service.claim(request_);
  if (!outcome) return Claim::error;
  if (auto* claimed = std::get_if<Claimed>(&*outcome)) {
    lease_ = std::move(claimed->lease);
    return Claim::won;
  }
  if (std::holds_alternative<Replay>(*outcome)) return Claim::replayed;
  return std::holds_alternative<InProgress>(*outcome) ? Claim::in_progress : Claim::error;
}

bool ServiceCaller::complete(IdempotencyService& service) {
  const auto outcome = service.complete(*lease_, benchmark_result());
  return outcome && std::holds_alternative<Completed>(*outcome);
}

}  // namespace idem::bench
