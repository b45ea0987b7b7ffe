#include "epoch.hpp"

#include <linux/membarrier.h>
#include <pthread.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace idem::memory {
namespace epoch {
namespace {

#if defined(__SANITIZE_THREAD__)
constexpr bool kSeesBarriers = false;
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
constexpr bool kSeesBarriers = false;
#else
constexpr bool kSeesBarriers = true;
#endif
#else
constexpr bool kSeesBarriers = true;
#endif

std::atomic<Slot*> slots{nullptr};
std::atomic<std::uint32_t> seats_taken{0};

bool membarrier(int command) noexcept { return ::syscall(SYS_membarrier, command, 0, 0) == 0; }
bool register_barriers() noexcept { return membarrier(MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED); }
bool barrier_in_all_threads() noexcept { return membarrier(MEMBARRIER_CMD_PRIVATE_EXPEDITED); }
const bool asymmetric = kSeesBarriers && register_barriers();

Slot* find_slot() {
  if (Slot* const left = take_free_seat(nullptr)) return left;
  Slot* const slot = new Slot;
  // relaxed: only deals out numbers
  const std::uint32_t number = seats_taken.fetch_add(1, std::memory_order_relaxed);
  slot->alone = number < kStripesAlone;
  slot->stripe = slot->alone ? number : kStripesAlone + number % (kStripes - kStripesAlone);
  slot->next = slots.load();
  while (!slots.compare_exchange_weak(slot->next, slot)) {
  }
  return slot;
}

// Gives the slot back when the thread ends.
struct Leaving {
  ~Leaving() {
    if (own != nullptr) leave_seat(*own);
    own = plainly = nullptr;
  }
};

// Only the forking thread lives on in the child: nobody else is pinned there.
void in_child() {
  generation.fetch_add(1);
  if (asymmetric) static_cast<void>(register_barriers());
  for (Slot* slot = slots.load(); slot != nullptr; slot = slot->next) {
    if (slot == own) continue;
    slot->pinned.store(0);
    slot->taken.store(false);
  }
}

const int kForkHandler = pthread_atfork(nullptr, nullptr, &in_child);

bool nobody_is_behind(std::uint64_t epoch) noexcept {
  for (const Slot* slot = slots.load(); slot != nullptr; slot = slot->next) {
    const std::uint64_t seen = slot->pinned.load();
    if (seen != 0 && seen != epoch) return false;
  }
  return true;
}

}  // namespace

Slot* take_free_seat(const Slot* behind) noexcept {
  for (Slot* slot = behind != nullptr ? behind->next : slots.load(); slot != nullptr;
       slot = slot->next) {
    bool free = false;
    // acquire: pairs with the release in leave_seat
    if (!slot->taken.load(std::memory_order_relaxed) &&
        slot->taken.compare_exchange_strong(free, true, std::memory_order_acquire))
      return slot;
  }
  return nullptr;
}

void leave_seat(Slot& slot) noexcept {
  slot.taken.store(false, std::memory_order_release);  // pairs with take_free_seat
}

Slot& seat() noexcept {
  static_cast<void>(kForkHandler);
  thread_local const Leaving kLeaving;
  static_cast<void>(&kLeaving);
  if (own == nullptr) own = find_slot();
  return *own;
}

void pin_otherwise() noexcept {
  Slot& slot = seat();
  const std::uint64_t seen = now.load();
  IDEM_PAUSE_POINT("memory.pin");
  slot.pinned.store(seen);
  if (asymmetric) plainly = &slot;  // from now on
  IDEM_PAUSE_POINT("memory.pinned");
}

}  // namespace epoch

bool try_advance() noexcept {
  std::uint64_t epoch = epoch::now.load();
  if (!epoch::nobody_is_behind(epoch)) return false;
  if (epoch::asymmetric && !(epoch::barrier_in_all_threads() && epoch::nobody_is_behind(epoch)))
    return false;
  IDEM_PAUSE_POINT("memory.reclaim.advance");
  return epoch::now.compare_exchange_strong(epoch, epoch + 1);
}

}  // namespace idem::memory
