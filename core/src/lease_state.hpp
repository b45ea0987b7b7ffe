// What a lease handle knows; shared with the heartbeat that renews it.
#pragma once

#include <atomic>
#include <memory>
#include <mutex>

#include "idem/service.hpp"

namespace idem::detail {

struct LeaseState {
  std::weak_ptr<ServiceImpl> service;  // who hears of a dropped handle
  Request request;
  Policy policy;
  ClaimKind kind = ClaimKind::fresh;
  std::uint64_t previous_fence = 0;
  bool bypass = false;
  Time sent{};  // by the service's clock: before the claim left
  // Attempt::safe_until(); written by Heartbeats, which sets its alarm at it.
  std::atomic<Time> safe_until{Time::max()};

  mutable std::mutex mutex;  // guards what follows
  Record known;              // as of the last write; owner and fence are always right
  Time known_at{};           // store time of that write
  bool believed = false;     // `known` may serve as a first guess (not for adopted leases)
  bool reported = false;     // completed, failed, released, or known to be over

  [[nodiscard]] Token token() const {
    const std::lock_guard guard(mutex);
    return known.token();
  }

  void learn(const Record& written, Time now) {
    const std::lock_guard guard(mutex);
    if (believed && written.version <= known.version) return;
    known = written;
    known_at = now;
    believed = true;
  }
};

}  // namespace idem::detail
