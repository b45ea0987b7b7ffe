#include "loop.hpp"

#include "idem/clock.hpp"

namespace idem::redis {

void Ringing::end_one(Gathering& gathering) {
  --gathering.pending_;
  ParkingWord* const bell = gathering.bell_.load();
  if (bell == nullptr || !gathering.over()) return;
  if (bell == &gathering.own_) {
    bell->fetch_add(1, std::memory_order_release);
    unpark_one(*bell);
  } else if (bell != bell_) {
    ring();
    bell_ = bell;
  }
}

void Ringing::ring() {
  if (bell_ == nullptr) return;
  bell_->fetch_add(1, std::memory_order_release);
  unpark_all(*bell_);
}

void Loop::wait(Gathering& gathering, std::size_t enough, Time deadline) {
  gathering.enough_ = enough;
  if (gathering.over()) return;
  std::unique_lock lock(mutex_);
  if (led_) {
    following_.push_back(gathering);
    const bool first = first_for_ != gathering.write_;
    first_for_ = gathering.write_;
    gathering.bell_ = first ? &gathering.own_ : &bells_[gathering.write_ % bells_.size()].rung;
    lock.unlock();
    follow(gathering, deadline);
    lock.lock();
    if (gathering.is_linked()) {
      following_.erase(following_.iterator_to(gathering));
      return;
    }
    gathering.leads_ = false;
  }
  led_ = true;
  lock.unlock();
  gathering.bell_ = nullptr;
  lead(gathering, deadline);
  hand_over();
}

void Loop::follow(Gathering& gathering, Time deadline) {
  const ParkingWord& bell = *gathering.bell_.load();
  for (;;) {
    const std::uint32_t seen = bell.load(std::memory_order_acquire);
    if (gathering.over() || gathering.leads_) return;
    const Micros left = deadline - system_clock().now();
    if (left <= Micros(0)) return;
    park_for(bell, seen, left);
  }
}

void Loop::lead(Gathering& gathering, Time deadline) {
  while (!gathering.over()) {
    const Micros left = deadline - system_clock().now();
    if (left <= Micros(0)) return;
    io_.run_one_for(left);
  }
}

// To one that sleeps alone, so that nobody else is woken; else to the one that has waited longest.
// Not to one that has its answer and will be gone.
void Loop::hand_over() {
  std::unique_lock lock(mutex_);
  Gathering* next = nullptr;
  for (Gathering& one : following_) {
    if (one.over()) continue;
    if (next == nullptr) next = &one;
    if (one.bell_.load() != &one.own_) continue;
    next = &one;
    break;
  }
  if (next == nullptr) {
    led_ = false;
    return;
  }
  following_.erase(following_.iterator_to(*next));
  next->leads_ = true;
  ParkingWord* const bell = next->bell_.load();
  const bool alone = bell == &next->own_;
  bell->fetch_add(1, std::memory_order_release);
  lock.unlock();  // the caller may be gone; see park.hpp
  if (alone) {
    unpark_one(*bell);
  } else {
    unpark_all(*bell);
  }
}

}  // namespace idem::redis
