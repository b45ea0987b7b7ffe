#include "service_impl.hpp"

namespace idem {

Lease::Lease(std::shared_ptr<detail::LeaseState> state) : state_(std::move(state)) {}

Lease& Lease::operator=(Lease&& other) noexcept {
  if (this != &other) {
    drop();
    state_ = std::move(other.state_);
  }
  return *this;
}

Lease::~Lease() { drop(); }

void Lease::drop() noexcept {
  if (!state_) return;
  const auto service = state_->service.lock();
  bool open = false;
  {
    const std::lock_guard guard(state_->mutex);
    open = !state_->reported && !state_->bypass;
  }
  if (open && service) service->dropped(*state_);
  state_.reset();
}

Lease Lease::adopt(Request request, Token token, std::uint32_t attempt) {
  auto state = std::make_shared<detail::LeaseState>();
  state->known.request_hash = request.fingerprint;
  state->request = std::move(request);
  state->known.owner = token.owner;
  state->known.fence = token.fence;
  state->known.attempt = attempt;
  return Lease(std::move(state));
}

const Request& Lease::request() const { return state_->request; }
Token Lease::token() const { return state_->token(); }
ClaimKind Lease::kind() const { return state_->kind; }
std::uint64_t Lease::previous_fence() const { return state_->previous_fence; }

std::uint32_t Lease::attempt() const {
  const std::lock_guard guard(state_->mutex);
  return state_->known.attempt;
}

Time Lease::lease_until() const {
  const std::lock_guard guard(state_->mutex);
  return state_->known.lease_until;
}

Micros Lease::lease_left() const {
  const std::lock_guard guard(state_->mutex);
  return state_->known.lease_until - state_->known_at;
}

Time Attempt::safe_until() const { return lease_.state_->safe_until; }

}  // namespace idem
