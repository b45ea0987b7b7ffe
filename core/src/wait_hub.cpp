#include "wait_hub.hpp"

#include <algorithm>
#include <random>

namespace idem::detail {
namespace {

constexpr Micros kPauseMin{5'000};
constexpr Micros kPauseMax{250'000};

Micros jittered(Micros pause) {
  thread_local std::minstd_rand random(std::random_device{}());
  return Micros(std::uniform_int_distribution<std::int64_t>(pause.count() * 4 / 5,
                                                            pause.count() * 6 / 5)(random));
}

}  // namespace

struct WaitHub::Waiter {
  WaitFor what;
  std::mutex mutex;
  std::condition_variable wake;
  std::optional<result<Outcome>> answer;

  void finish(result<Outcome> with) {
    const std::lock_guard guard(mutex);
    if (answer) return;
    answer = std::move(with);
    wake.notify_all();
  }
};

// Guarded by the hub's mutex.
struct WaitHub::Group {
  Key key;
  std::vector<std::shared_ptr<Waiter>> waiters;
  std::optional<result<std::optional<Record>>> seen;  // the last read
  Time seen_store_now{};
  Time seen_at{};  // the clock's time of that read
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

result<Outcome> WaitHub::wait(KeyRef key, const WaitFor& what, Time deadline) {
  const auto waiter = std::make_shared<Waiter>();
  waiter->what = what;
  const Key owned(key);
  join(waiter, key);
  read_due();
  const Timers::Id alarm = deadlines_->call_at(deadline, [this, waiter, owned] {
    std::optional<result<Outcome>> last;
    {
      const std::lock_guard guard(mutex_);
      const auto found = groups_.find(owned);
      if (found != groups_.end()) last = found->second->judge(waiter->what, clock_.now());
    }
    if (!last) last = Outcome(InProgress{kPauseMin, 1});
    waiter->finish(std::move(*last));
  });
  {
    std::unique_lock lock(waiter->mutex);
    waiter->wake.wait(lock, [&] { return waiter->answer.has_value(); });
  }
  deadlines_->cancel(alarm);
  leave(waiter, owned);
  return std::move(*waiter->answer);
}

void WaitHub::join(const std::shared_ptr<Waiter>& waiter, KeyRef key) {
  const std::lock_guard guard(mutex_);
  if (stopped_) {
    waiter->finish(idem::fail(errc::shutting_down, "the service is shutting down"));
    return;
  }
  auto& group = groups_[Key(key)];
  if (!group) {
    group = std::make_shared<Group>();
    group->key = Key(key);
    group->next_read = clock_.now();
  }
  group->waiters.push_back(waiter);
  // A read of the last moment serves the newcomer, too; otherwise it is due now.
  if (clock_.now() - group->seen_at > kPauseMin) group->next_read = clock_.now();
}

void WaitHub::leave(const std::shared_ptr<Waiter>& waiter, const Key& key) {
  const std::lock_guard guard(mutex_);
  const auto found = groups_.find(key);
  if (found == groups_.end()) return;
  std::erase(found->second->waiters, waiter);
  if (found->second->waiters.empty()) groups_.erase(found);
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
  const std::lock_guard guard(mutex_);
  stopped_ = true;
  for (auto& [key, group] : groups_) {
    for (auto& waiter : group->waiters) {
      waiter->finish(idem::fail(errc::shutting_down, "the service is shutting down"));
    }
  }
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
  store_->load(loads);

  const std::lock_guard guard(mutex_);
  for (std::size_t i = 0; i < due.size(); ++i) {
    Group& group = *due[i];
    Answer& answer = loads[i].answer;
    group.reading = false;
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
    plan(group);
  }
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

// Answers whom the last read satisfies and sets the time of the next one. Mutex held.
void WaitHub::plan(Group& group) {
  const Time now = clock_.now();
  std::optional<Micros> ends_in;  // the lease, or the backoff
  bool told_claimable = false;
  for (auto& waiter : group.waiters) {
    const auto judged = group.judge(waiter->what, now);
    if (!judged || !*judged) continue;  // errors are waited out until the deadline
    const Outcome& outcome = **judged;
    if (const auto* busy = std::get_if<InProgress>(&outcome)) {
      ends_in = busy->retry_after;
    } else if (const auto* backoff = std::get_if<Backoff>(&outcome)) {
      ends_in = backoff->retry_after;
    } else if (std::holds_alternative<Claimable>(outcome) && waiter->what.will_claim) {
      const std::lock_guard guard(waiter->mutex);
      if (waiter->answer || told_claimable) continue;
      waiter->answer = *judged;
      waiter->wake.notify_all();
      told_claimable = true;
    } else {
      waiter->finish(*judged);
    }
  }
  if (group.changed) {
    group.next_read = now;
    return;
  }
  const bool quiet = group.watched && !group.unread && ends_in.has_value() && !told_claimable;
  group.next_read = now + (quiet ? *ends_in : jittered(group.pause));
  if (ends_in) group.next_read = std::min(group.next_read, now + *ends_in);
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
