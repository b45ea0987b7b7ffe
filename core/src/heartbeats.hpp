// Heartbeats: keeps the leases of running actions alive.
//
// A beat renews at lease/3, all due beats in one batch. Each has a local safe deadline: the time
// the last confirmed claim or renewal was sent, plus the lease, minus a margin. Reaching it, or
// learning that the lease is lost, stops the action: from then on its result counts for nothing.
#pragma once

#include <atomic>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <stop_token>

#include "driver.hpp"
#include "idem/clock.hpp"
#include "lease_state.hpp"

namespace idem::detail {

// One running action.
struct Beat {
  std::shared_ptr<LeaseState> lease;
  std::stop_source stop;
  std::atomic<bool> lost{false};  // the lease is or may be lost
  Time sent{};                    // of the last confirmed claim or renewal; guarded by Heartbeats
  Time next{};
};

// Thread safe.
class Heartbeats {
 public:
  Heartbeats(StorePtr store, Clock& clock);

  // `sent`: when the claim was sent, by the clock. The lease's policy gives the rhythm.
  std::shared_ptr<Beat> start(std::shared_ptr<LeaseState> lease, Time sent);

  // After the return the beat neither renews nor stops the action any more.
  void end(const std::shared_ptr<Beat>& beat);

 private:
  void renew_due();
  void schedule();
  void settle(const std::shared_ptr<Beat>& beat, const Call& call, Time sent);
  void arm_deadline(const std::shared_ptr<Beat>& beat);

  StorePtr store_;
  Clock& clock_;
  std::mutex mutex_;
  std::map<std::shared_ptr<Beat>, Timers::Id> beats_;  // with the alarm of the safe deadline
  std::optional<Time> scheduled_at_;
  std::unique_ptr<Timers> renewals_;
  std::unique_ptr<Timers> deadlines_;  // apart: a slow store must not delay them
};

}  // namespace idem::detail
