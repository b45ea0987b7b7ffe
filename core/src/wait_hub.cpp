#include "wait_hub.hpp"

#include <algorithm>
#include <condition_variable>
#include <random>
#include <utility>

namespace idem::detail {
namespace {

constexpr Micros kPauseMin{5'000};
constexpr Micros kPauseMax{250'000};
constexpr Micros kNewcomersPause{100'000};

Micros jittered(Micros pause) {
  thread_local std::minstd_rand random(std::random_device{}());
  return Micros(std::uniform_int_distribution<std::int64_t>(pause.count() * 4 / 5,
                                                            pause.count() * 6 / 5)(random));
}

}  // namespace

// Guarded by the hub's mutex.
struct WaitHub::Waiter {
  WaitFor what;
  Done done;                       // empty once the answer is on its way
  std::shared_ptr<Group> group;    // while it waits
  std::list<Ticket>::iterator at;  // its place among the group's waiters
  Timers::Id alarm = 0;
  bool overdue = false;  // the deadline passed before the first read: that one is the answer
};

// An answer on its way, to be given without the lock.
struct WaitHub::Told {
  Done done;
  Timers::Id alarm = 0;
  result<Outcome> answer;
};

// Guarded by the hub's mutex.
struct WaitHub::Group {
  Key key;
  std::list<Ticket> waiters;                          // the longest waiting first
  std::optional<result<std::optional<Record>>> seen;  // the last read
  Time seen_store_now{};
  Time asked_at{};  // the clock's time when the last read began, also one that failed
  Time seen_at{};   // and when it was over: a failed one gives what was seen no more age, for only
                    // a read that succeeds may find a lease over
  Time next_read{};
  Micros pause = kPauseMin;
  bool reading = false;
  bool changed = false;  // while reading: read again
  bool watched = false;
  bool unread = false;  // the last read failed: `seen` is older, and may miss a change

  // What a waiter is to be told of the last read; nullopt: there was none.
  [[nodiscard]] std::optional<result<Outcome>> judge(const WaitFor& what, Time clock_now) const {
    if (!seen) return std::nullopt;
    if (!*seen) return result<Outcome>(seen->error());
    const Record* record = (*seen)->has_value() ? &(*seen)->value() : nullptr;
    const Time store_now = seen_store_now + std::max(Micros(0), clock_now - seen_at);
    return result<Outcome>(
        step(record, command::Peek{what.fingerprint, what.policy}, store_now).outcome);
  }
};

WaitHub::WaitHub(StorePtr store, Clock& clock)
    : store_(std::move(store)), clock_(clock), reads_(clock.timers()), deadlines_(clock.timers()) {}

WaitHub::~WaitHub() { stop(); }

WaitHub::Ticket WaitHub::start(KeyRef key, const WaitFor& what, Time deadline, Done done) {
  Ticket ticket = join(key, what, std::move(done));
  if (is_first_to_read(ticket)) schedule();
  arm_deadline(ticket, deadline);
  return ticket;
}

result<Outcome> WaitHub::wait(KeyRef key, const WaitFor& what, Time deadline) {
  struct Call {
    std::mutex mutex;
    std::condition_variable wake;
    std::optional<result<Outcome>> answer;
  };
  const auto call = std::make_shared<Call>();  // whoever answers may still hold it
  const Ticket ticket = join(key, what, [call](result<Outcome> answer) {
    const std::lock_guard guard(call->mutex);
    call->answer = std::move(answer);
    call->wake.notify_all();
  });
  read_due();
  arm_deadline(ticket, deadline);
  std::unique_lock lock(call->mutex);
  call->wake.wait(lock, [&] { return call->answer.has_value(); });
  return std::move(*call->answer);
}

WaitHub::Ticket WaitHub::join(KeyRef key, const WaitFor& what, Done done) {
  auto ticket = std::make_shared<Waiter>();
  {
    const std::lock_guard guard(mutex_);
    if (!stopped_) {
      ticket->what = what;
      ticket->done = std::move(done);
      auto& group = groups_[Key(key)];
      if (!group) {
        group = std::make_shared<Group>();
        group->key = Key(key);
        group->next_read = clock_.now();
      } else if (group->seen) {
        group->next_read = std::min(group->next_read, group->seen_at + kNewcomersPause);
      }
      ticket->group = group;
      ticket->at = group->waiters.insert(group->waiters.end(), ticket);
      return ticket;
    }
  }
  done(idem::fail(errc::shutting_down, "the service is shutting down"));
  return ticket;
}

// Whether the next read, as planned, would come too late for this waiter.
bool WaitHub::is_first_to_read(const Ticket& ticket) {
  const std::lock_guard guard(mutex_);
  if (!ticket->done || ticket->group->reading) return false;
  return !scheduled_at_ || ticket->group->next_read < *scheduled_at_;
}

void WaitHub::arm_deadline(const Ticket& ticket, Time deadline) {
  {
    const std::lock_guard guard(mutex_);
    if (!ticket->done) return;
  }
  const Timers::Id alarm =
      deadlines_->call_at(deadline, [this, ticket] { reach_deadline(ticket); });
  {
    const std::lock_guard guard(mutex_);
    if (ticket->done) {
      ticket->alarm = alarm;
      return;
    }
  }
  deadlines_->cancel(alarm);  // answered meanwhile
}

void WaitHub::reach_deadline(const Ticket& ticket) {
  std::vector<Told> told;
  {
    const std::lock_guard guard(mutex_);
    if (!ticket->done) return;
    ticket->alarm = 0;
    auto last = ticket->group->judge(ticket->what, clock_.now());
    if (!last) {
      ticket->overdue = true;
      return;
    }
    told.push_back(take(ticket, std::move(*last)));
  }
  tell(std::move(told));
}

void WaitHub::cancel(const Ticket& ticket, Error why) {
  std::vector<Told> told;
  {
    const std::lock_guard guard(mutex_);
    if (!ticket->done) return;
    told.push_back(take(ticket, std::move(why)));
  }
  tell(std::move(told));
}

// Takes a waiter out of its group. Mutex held, and the waiter not answered yet.
WaitHub::Told WaitHub::take(const Ticket& ticket, result<Outcome> answer) {
  Told told{std::exchange(ticket->done, {}), ticket->alarm, std::move(answer)};
  const auto group = std::move(ticket->group);
  const Ticket kept = ticket;  // `ticket` may be the list's own
  group->waiters.erase(ticket->at);
  if (group->waiters.empty()) {
    const auto found = groups_.find(group->key);
    if (found != groups_.end() && found->second == group) groups_.erase(found);
  }
  return told;
}

// Without the mutex.
void WaitHub::tell(std::vector<Told> told) {
  for (Told& one : told) {
    deadlines_->cancel(one.alarm);
    one.done(std::move(one.answer));
  }
}

void WaitHub::changed(KeyRef key) {
  {
    const std::lock_guard guard(mutex_);
    const auto found = groups_.find(Key(key));
    if (found == groups_.end()) return;
    found->second->next_read = clock_.now();
    found->second->changed = true;
    found->second->pause = kPauseMin;
  }
  // Not here: the caller is a writer, or holds what a read may need.
  schedule();
}

void WaitHub::stop() {
  std::vector<Told> told;
  {
    const std::lock_guard guard(mutex_);
    stopped_ = true;
    const Groups groups = std::exchange(groups_, {});
    for (const auto& [key, group] : groups) {
      while (!group->waiters.empty()) {
        told.push_back(take(group->waiters.front(),
                            idem::fail(errc::shutting_down, "the service is shutting down")));
      }
    }
  }
  tell(std::move(told));
}

std::vector<std::shared_ptr<WaitHub::Group>> WaitHub::take_due(Time now) {
  std::vector<std::shared_ptr<Group>> due;
  const std::lock_guard guard(mutex_);
  if (stopped_) return due;
  for (auto& [key, group] : groups_) {
    if (group->reading || group->next_read > now) continue;
    group->reading = true;
    group->changed = false;
    due.push_back(group);
  }
  return due;
}

void WaitHub::read_due() {
  for (auto due = take_due(clock_.now()); !due.empty(); due = take_due(clock_.now())) read(due);
  schedule();
}

void WaitHub::read(std::vector<std::shared_ptr<Group>>& due) {
  for (const auto& group : due) arm_watch(group);
  std::vector<Load> loads;
  loads.reserve(due.size());
  for (const auto& group : due) loads.push_back({group->key, {}});
  const Time asked_at = clock_.now();
  store_->load(loads);

  std::vector<Told> told;
  std::unique_lock lock(mutex_);
  for (std::size_t i = 0; i < due.size(); ++i) {
    Group& group = *due[i];
    Answer& answer = loads[i].answer;
    group.reading = false;
    group.asked_at = asked_at;
    group.seen_at = clock_.now();
    group.unread = answer.state == Answer::State::failed;
    if (group.unread) {
      if (!group.seen || !*group.seen) group.seen = std::move(answer.error);
    } else {
      group.seen_store_now = answer.now;
      group.seen = answer.state == Answer::State::stands
                       ? std::optional<Record>(std::move(answer.held))
                       : std::nullopt;
    }
    plan(group, told);
  }
  lock.unlock();
  tell(std::move(told));
}

void WaitHub::arm_watch(const std::shared_ptr<Group>& group) {
  {
    const std::lock_guard guard(mutex_);
    if (group->watched) return;
    group->watched = true;
  }
  const bool watches = store_->watch(
      group->key, [weak_hub = weak_from_this(), weak_group = std::weak_ptr<Group>(group)] {
        const auto hub = weak_hub.lock();
        const auto alive = weak_group.lock();
        if (!hub || !alive) return;
        {
          const std::lock_guard guard(hub->mutex_);
          alive->watched = false;
        }
        hub->changed(alive->key);
      });
  if (watches) return;
  const std::lock_guard guard(mutex_);
  group->watched = false;
}

// Takes out whom the last read satisfies and sets the time of the next one. Mutex held.
void WaitHub::plan(Group& group, std::vector<Told>& told) {
  const Time now = clock_.now();
  std::optional<Micros> ends_in;  // the lease, or the backoff
  bool told_claimable = false;
  for (auto next = group.waiters.begin(); next != group.waiters.end();) {
    const Ticket waiter = *next++;
    auto judged = group.judge(waiter->what, now);
    if (!judged) continue;
    bool goes_on = false;
    if (!*judged) {
      goes_on = true;  // errors are waited out until the deadline
    } else if (const auto* busy = std::get_if<InProgress>(&**judged)) {
      ends_in = busy->retry_after;
      goes_on = true;
    } else if (const auto* backoff = std::get_if<Backoff>(&**judged)) {
      ends_in = backoff->retry_after;
      goes_on = true;
    } else if (std::holds_alternative<Claimable>(**judged) && waiter->what.will_claim) {
      goes_on = std::exchange(told_claimable, true);
    }
    if (!goes_on || waiter->overdue) told.push_back(take(waiter, std::move(*judged)));
  }
  if (group.changed) {
    group.next_read = now;
    return;
  }
  const bool quiet = group.watched && !group.unread && ends_in.has_value() && !told_claimable;
  // The store judged at any time since it was asked: counted from then the end is never missed, and
  // one that may have gone by meanwhile is looked at again at once.
  const Time ends_at = (group.unread ? now : group.asked_at) + ends_in.value_or(kPauseMax);
  if (ends_in && !group.unread && ends_at <= now) {
    group.next_read = now;
    return;
  }
  group.next_read = quiet ? ends_at : now + jittered(group.pause);
  if (ends_in) group.next_read = std::min(group.next_read, ends_at);
  if (group.next_read <= now) group.next_read = now + Micros(1);
  if (!quiet) group.pause = std::min(kPauseMax, group.pause * 8 / 5);
}

void WaitHub::schedule() {
  Time next{};
  {
    const std::lock_guard guard(mutex_);
    if (stopped_) return;
    std::optional<Time> earliest;
    for (const auto& [key, group] : groups_) {
      if (group->reading) continue;  // its reader plans the next one
      if (!earliest || group->next_read < *earliest) earliest = group->next_read;
    }
    if (!earliest) return;
    next = *earliest;
    if (scheduled_at_ && *scheduled_at_ <= next) return;
    scheduled_at_ = next;
  }
  reads_->call_at(next, [this, next] {
    {
      const std::lock_guard guard(mutex_);
      if (scheduled_at_ == next) scheduled_at_.reset();
    }
    read_due();
  });
}

}  // namespace idem::detail
