#include "loop.hpp"

#include "idem/clock.hpp"

namespace idem::redis {

void Loop::wait(Gathering& gathering, std::size_t enough, Time deadline) {
  {
    std::unique_lock lock(mutex_);
    {
      const std::lock_guard guard(gathering.mutex);
      gathering.enough = enough;
      if (gathering.over()) return;
    }
    if (led_) {
      following_.push_back(gathering);
      lock.unlock();
      follow(gathering, deadline);
      lock.lock();
      if (gathering.is_linked()) {
        following_.erase(following_.iterator_to(gathering));
        return;
      }
      gathering.leads = false;
    }
    led_ = true;
  }
  lead(gathering, deadline);
  hand_over();
}

void Loop::follow(Gathering& gathering, Time deadline) {
  std::unique_lock lock(gathering.mutex);
  gathering.changed.wait_for(lock, deadline - system_clock().now(),
                             [&] { return gathering.over() || gathering.leads; });
}

void Loop::lead(Gathering& gathering, Time deadline) {
  for (;;) {
    {
      const std::lock_guard guard(gathering.mutex);
      if (gathering.over()) return;
    }
    const Micros left = deadline - system_clock().now();
    if (left <= Micros(0)) return;
    io_.run_one_for(left);
  }
}

// To the caller that has waited longest; not to one that has its answer and will be gone.
void Loop::hand_over() {
  const std::lock_guard lock(mutex_);
  for (Gathering& next : following_) {
    const std::lock_guard guard(next.mutex);
    if (next.over()) continue;
    next.leads = true;
    following_.erase(following_.iterator_to(next));
    next.changed.notify_one();
    return;
  }
  led_ = false;
}

}  // namespace idem::redis
