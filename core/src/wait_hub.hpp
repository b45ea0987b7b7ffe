// The wait hub: everybody in this process who waits for somebody else's attempt.
//
// Waiters on one key form a group and share its reads: at most one load at a time, in batches over
// all groups that are due. On a store that can watch, a group reads when something changed or a
// lease ends; else it polls with growing, jittered pauses (5 ms to 250 ms: about 15 reads in the
// first 2 s, however many wait; newcomers hasten a read to no less than 100 ms after the one
// before). Readers never write; who is told Claimable must claim again.
#pragma once

#include <functional>
#include <list>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include "idem/clock.hpp"
#include "idem/state_machine.hpp"

namespace idem::detail {

struct WaitFor {
  Fingerprint fingerprint;
  Policy policy;
  bool will_claim = false;  // one such waiter is told Claimable at a time, the rest go on waiting
};

// Thread safe. Borrows its clock. Always owned by a shared_ptr: a store's watch may outlive it.
class WaitHub : public std::enable_shared_from_this<WaitHub> {
 public:
  struct Waiter;
  using Ticket = std::shared_ptr<Waiter>;
  // Called exactly once, without a lock of the hub, from whichever thread found the answer: a timer
  // thread, a writer, the caller of cancel() or stop(), also the caller of start() itself. Must be
  // short and must not throw.
  using Done = std::function<void(result<Outcome>)>;

  WaitHub(StorePtr store, Clock& clock);
  ~WaitHub();

  // Tells when the record allows another answer than InProgress or Backoff, or when `deadline` (of
  // the clock) is reached and the record was read once. Errors of single reads are waited out; the
  // last one is the answer at the deadline if no read ever succeeded.
  Ticket start(KeyRef key, const WaitFor& what, Time deadline, Done done);

  // As start(), blocking; the first read is made by the caller.
  result<Outcome> wait(KeyRef key, const WaitFor& what, Time deadline);

  // Ends a waiting with `why`, unless it is over already.
  void cancel(const Ticket& ticket, Error why);

  // A hint from the verbs of this process: this key's record changed.
  void changed(KeyRef key);

  // Everybody gets shutting_down, now and from now on.
  void stop();

 private:
  struct Group;
  struct Told;
  using Groups = std::map<Key, std::shared_ptr<Group>>;

  Ticket join(KeyRef key, const WaitFor& what, Done done);
  bool is_first_to_read(const Ticket& ticket);
  void arm_deadline(const Ticket& ticket, Time deadline);
  void reach_deadline(const Ticket& ticket);
  Told take(const Ticket& ticket, result<Outcome> answer);
  void tell(std::vector<Told> told);
  void read_due();
  std::vector<std::shared_ptr<Group>> take_due(Time now);
  void read(std::vector<std::shared_ptr<Group>>& due);
  void arm_watch(const std::shared_ptr<Group>& group);
  void plan(Group& group, std::vector<Told>& told);
  void schedule();

  StorePtr store_;
  Clock& clock_;
  std::mutex mutex_;
  Groups groups_;
  bool stopped_ = false;
  std::optional<Time> scheduled_at_;
  std::unique_ptr<Timers> reads_;
  std::unique_ptr<Timers> deadlines_;  // apart: a slow store must not delay them
};

}  // namespace idem::detail
