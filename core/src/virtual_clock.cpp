#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <limits>
#include <map>
#include <mutex>
#include <set>
#include <thread>
#include <utility>

#include "idem/clock.hpp"

namespace idem {

struct VirtualClock::State {
  mutable std::mutex mutex;
  std::condition_variable finished;
  std::atomic<std::int64_t> now_us{0};
  std::map<std::pair<Time, Timers::Id>, std::pair<const void*, std::function<void()>>> due;
  std::map<Timers::Id, Time> instants;
  std::map<Timers::Id, std::pair<const void*, std::thread::id>> running;
  Timers::Id last_id = 0;

  // Runs one piece of work with the mutex released.
  void run(std::unique_lock<std::mutex>& lock, Timers::Id id, const void* queue,
           std::function<void()> work) {
    running[id] = {queue, std::this_thread::get_id()};
    lock.unlock();
    work();
    work = nullptr;
    lock.lock();
    running.erase(id);
    finished.notify_all();
  }
};

class VirtualClock::Queue final : public Timers {
 public:
  explicit Queue(std::shared_ptr<State> state) : state_(std::move(state)) {}

  ~Queue() override {
    std::unique_lock lock(state_->mutex);
    std::erase_if(state_->due, [&](const auto& entry) {
      if (entry.second.first != this) return false;
      state_->instants.erase(entry.first.second);
      return true;
    });
    state_->finished.wait(lock, [&] {
      return std::none_of(state_->running.begin(), state_->running.end(), [&](const auto& entry) {
        return entry.second.first == this && entry.second.second != std::this_thread::get_id();
      });
    });
  }

  Id call_at(Time at, std::function<void()> work) override {
    std::unique_lock lock(state_->mutex);
    const Id id = ++state_->last_id;
    // relaxed: written under the mutex held here
    const Time now{Micros(state_->now_us.load(std::memory_order_relaxed))};
    if (at <= now) {
      state_->run(lock, id, this, std::move(work));
    } else {
      state_->due.emplace(std::pair(at, id), std::pair(this, std::move(work)));
      state_->instants.emplace(id, at);
    }
    return id;
  }

  bool cancel(Id id) override {
    std::unique_lock lock(state_->mutex);
    if (const auto found = state_->instants.find(id); found != state_->instants.end()) {
      state_->due.erase({found->second, id});
      state_->instants.erase(found);
      return true;
    }
    state_->finished.wait(lock, [&] {
      const auto found = state_->running.find(id);
      return found == state_->running.end() || found->second.second == std::this_thread::get_id();
    });
    return false;
  }

 private:
  std::shared_ptr<State> state_;
};

VirtualClock::VirtualClock(Time start) : state_(std::make_shared<State>()) {
  state_->now_us.store(start.time_since_epoch().count(), std::memory_order_relaxed);
}

VirtualClock::~VirtualClock() = default;

Time VirtualClock::now() const noexcept {
  // acquire: pairs with the release in advance(), so what was done before an advance is seen after
  // it
  return Time{Micros(state_->now_us.load(std::memory_order_acquire))};
}

std::unique_ptr<Timers> VirtualClock::timers() { return std::make_unique<Queue>(state_); }

Micros VirtualClock::offset() const noexcept { return now() - system_clock().now(); }

void VirtualClock::advance(Duration d) {
  if (d.micros() <= Micros(0)) return;
  State& state = *state_;
  std::unique_lock lock(state.mutex);
  const auto move_to = [&](Time at) {
    const std::int64_t us = at.time_since_epoch().count();
    // release: pairs with the acquire in now(). Several threads may advance at once: never back.
    if (us > state.now_us.load(std::memory_order_relaxed)) {
      state.now_us.store(us, std::memory_order_release);
    }
  };
  const std::int64_t start = state.now_us.load(std::memory_order_relaxed);
  const std::int64_t room = std::numeric_limits<std::int64_t>::max() / 2 - start;
  const Time target{Micros(start + std::min(d.micros().count(), room))};
  while (!state.due.empty() && state.due.begin()->first.first <= target) {
    auto first = state.due.extract(state.due.begin());
    const Timers::Id id = first.key().second;
    state.instants.erase(id);
    move_to(first.key().first);
    state.run(lock, id, first.mapped().first, std::move(first.mapped().second));
  }
  move_to(target);
}

}  // namespace idem
