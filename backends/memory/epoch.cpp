#include "epoch.hpp"

#include <pthread.h>

#include "idem/pause_point.hpp"

namespace idem::memory {
namespace {

// A line of its own: written by its thread at every pin.
struct alignas(64) Slot {
  std::atomic<std::uint64_t> epoch{0};
  std::atomic<bool> taken{true};
  std::uint32_t depth = 0;  // of nested pins; its thread's only
  Slot* next = nullptr;
};

alignas(64) std::atomic<std::uint64_t> epoch_now{1};
alignas(64) std::atomic<Slot*> slots{nullptr};
std::atomic<std::uint32_t> generation{0};

Slot* take_slot() {
  for (Slot* slot = slots.load(); slot != nullptr; slot = slot->next) {
    bool free = false;
    // acquire: pairs with the release of the thread that gave the slot back
    if (!slot->taken.load(std::memory_order_relaxed) &&
        slot->taken.compare_exchange_strong(free, true, std::memory_order_acquire))
      return slot;
  }
  Slot* const slot = new Slot;
  slot->next = slots.load();
  while (!slots.compare_exchange_weak(slot->next, slot)) {
  }
  return slot;
}

// Gives the slot back when the thread ends.
class Seat {
 public:
  ~Seat() {
    // release: pairs with the acquire in take_slot
    if (slot_ != nullptr) slot_->taken.store(false, std::memory_order_release);
    slot_ = nullptr;
  }
  [[nodiscard]] Slot& slot() {
    if (slot_ == nullptr) slot_ = take_slot();
    return *slot_;
  }
  [[nodiscard]] const Slot* held() const { return slot_; }

 private:
  Slot* slot_ = nullptr;
};

thread_local Seat seat;

// Only the forking thread lives on in the child: nobody else is pinned there.
void in_child() {
  generation.fetch_add(1);
  for (Slot* slot = slots.load(); slot != nullptr; slot = slot->next) {
    if (slot == seat.held()) continue;
    slot->epoch.store(0);
    slot->depth = 0;
    slot->taken.store(false);
  }
}

const int kForkHandler = pthread_atfork(nullptr, nullptr, &in_child);

}  // namespace

Pin::Pin() {
  Slot& slot = seat.slot();
  if (slot.depth++ != 0) return;
  slot.epoch.store(epoch_now.load());
  IDEM_PAUSE_POINT("memory.pinned");
}

Pin::~Pin() {
  Slot& slot = seat.slot();
  if (--slot.depth == 0) slot.epoch.store(0, std::memory_order_release);  // pairs: try_advance
}

std::uint64_t current_epoch() noexcept { return epoch_now.load(); }

bool try_advance() noexcept {
  std::uint64_t epoch = epoch_now.load();
  for (const Slot* slot = slots.load(); slot != nullptr; slot = slot->next) {
    const std::uint64_t seen = slot->epoch.load();
    if (seen != 0 && seen != epoch) return false;
  }
  IDEM_PAUSE_POINT("memory.reclaim.advance");
  return epoch_now.compare_exchange_strong(epoch, epoch + 1);
}

std::uint32_t process_generation() noexcept {
  static_cast<void>(kForkHandler);
  return generation.load(std::memory_order_relaxed);  // pairs with nothing: set before main code
}

}  // namespace idem::memory
