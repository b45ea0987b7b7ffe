#include "late_claims.hpp"

#include <algorithm>

namespace idem::serve {
namespace {

constexpr Micros kPauseMin = std::chrono::milliseconds(100);
constexpr Micros kPauseMax = std::chrono::seconds(15);
// Behind a store that is away.
constexpr Micros kPauseAway = std::chrono::seconds(1);

}  // namespace

LateClaims::LateClaims(IdempotencyService& service, Metrics& metrics)
    : service_(service), metrics_(metrics) {}

void LateClaims::watch(const Key& key, const Owner& owner) {
  {
    const std::lock_guard guard(mutex_);
    if (due_.size() >= kLateClaimsMax) {
      metrics_.count(LateEnd::given_up);
      return;
    }
    const Time now = service_.clock().now();
    due_.emplace(now + kPauseMin, Late{key, owner, now, kPauseMin});
    tell_number();
  }
  on_watch();
}

Micros LateClaims::until_due() const {
  const std::lock_guard guard(mutex_);
  if (due_.empty()) return std::chrono::hours(24);
  return std::max(Micros(0), due_.begin()->first - service_.clock().now());
}

bool LateClaims::look() {
  ByTime::node_type node;
  {
    const std::lock_guard guard(mutex_);
    if (due_.empty() || due_.begin()->first > service_.clock().now()) return false;
    node = due_.extract(due_.begin());
  }
  Late& late = node.mapped();
  const Seen seen = look_for(late);
  const Time now = service_.clock().now();
  const std::lock_guard guard(mutex_);
  if (seen == Seen::store_away) {
    node.key() = now + kPauseAway;
    due_.insert(std::move(node));
    return false;
  }
  if (now - late.since < kLateClaimWatch) {
    // Also when it was released: the service had repeated it, and each of its writes may be late.
    late.pause = std::min(late.pause * 2, kPauseMax);
    node.key() = now + late.pause;
    due_.insert(std::move(node));
  }
  tell_number();
  return true;
}

void LateClaims::look_for_the_last_time(Time deadline) {
  ByTime left;
  {
    const std::lock_guard guard(mutex_);
    left.swap(due_);
    tell_number();
  }
  for (auto one = left.begin(); one != left.end(); ++one) {
    if (service_.clock().now() < deadline && look_for(one->second) != Seen::store_away) continue;
    for (; one != left.end(); ++one) metrics_.count(LateEnd::given_up);
    return;
  }
}

LateClaims::Seen LateClaims::look_for(const Late& late) {
  const auto found = service_.get(late.key);
  if (!found) {
    // Damage will not be mended by looking again.
    return found.error().code == errc::corrupt ? Seen::nothing : Seen::store_away;
  }
  if (!*found) return Seen::nothing;
  const Record& record = (*found)->record;
  if (record.owner != late.owner || record.status != Status::processing) return Seen::nothing;
  Lease lease =
      Lease::adopt({late.key, record.request_hash}, {record.owner, record.fence}, record.attempt);
  if (!service_.report(lease, NothingDone{})) return Seen::store_away;
  metrics_.count(LateEnd::released);
  return Seen::released;
}

void LateClaims::tell_number() { metrics_.set_late_claims(due_.size()); }

}  // namespace idem::serve
