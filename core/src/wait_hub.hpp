// The wait hub: everybody in this process who waits for somebody else's attempt.
//
// Waiters on one key form a group and share its reads: at most one load at a time, in batches over
// all groups that are due. On a store that can watch, a group reads when something changed or a
// lease ends; else it polls with growing, jittered pauses (5 ms to 250 ms: about 15 reads in the
// first 2 s, however many wait). Readers never write; who is told Claimable must claim again.
#pragma once

#include <condition_variable>
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
  WaitHub(StorePtr store, Clock& clock);
  ~WaitHub();

  // Blocks until the record allows another answer than InProgress or Backoff, or `deadline` (of the
  // clock) is reached. Errors of single reads are waited out; the last one is the answer at the
  // deadline if no read ever succeeded.
  result<Outcome> wait(KeyRef key, const WaitFor& what, Time deadline);

  // A hint from the verbs of this process: this key's record changed.
  void changed(KeyRef key);

  // Everybody gets shutting_down, now and from now on.
  void stop();

 private:
  struct Waiter;
  struct Group;
  using Groups = std::map<Key, std::shared_ptr<Group>>;

  void join(const std::shared_ptr<Waiter>& waiter, KeyRef key);
  void leave(const std::shared_ptr<Waiter>& waiter, const Key& key);
  void read_due();
  std::vector<std::shared_ptr<Group>> take_due(Time now);
  void read(std::vector<std::shared_ptr<Group>>& due);
  void arm_watch(const std::shared_ptr<Group>& group);
  void plan(Group& group);
  void schedule();

  StorePtr store_;
  Clock& clock_;
  std::mutex mutex_;
  Groups groups_;
  bool stopped_ = false;
  std::optional<Time> scheduled_at_;
  std::unique_ptr<Timers> reads_;
  std::unique_ptr<Timers> deadlines_;
};

}  // namespace idem::detail
