// Epoch-based reclamation: when may memory that was taken out of a structure be reused?
//
// Layout. One process-wide epoch counter G and one slot per thread, kept for ever and handed on
// when a thread ends. A slot holds 0 (not pinned) or the epoch its thread saw when it pinned.
//
// Rules. A thread pins before it follows a link, and unpins when it holds no reference any more.
// What was unlinked is retired, by a pinned thread, with tag = G read after the unlinking. Only
// try_advance() moves G, from g to g + 1, after it saw every slot either unpinned or at g.
// Retired memory is reused only by someone who has read G >= tag + 2.
//
// Reclamation argument. All accesses named here are seq_cst, so they have one total order S. Let T
// write its slot at A in S, with value t, and let g0 be G at A. (t <= g0: t was read before A.)
// While T stays pinned, G <= g0 + 1: an advance that looked at T's slot before A read its g before
// A too, and succeeds only if G is still g, so it sets at most g0 + 1; one that looked after A saw
// t, needs t == g, and sets t + 1 <= g0 + 1. If T reached an object, T read the link to it after A
// and before the unlinking, so the tag, read after that, is >= g0. Reuse needs G >= tag + 2 >=
// g0 + 2, which cannot be while T is pinned.
// The same bound serves whoever retires or reclaims: while one is pinned, G grows by at most one.
//
// Asymmetric pins. Where the system has membarrier, a pin is a plain store, and try_advance() makes
// all threads of the process pass a full barrier after it read g and before it looks at the slots.
// A pin before that barrier is then visible to the look, as above. After a pin behind it, T's reads
// come after the barrier too, so after everything that came before G = g: objects whose tag is
// below g were unlinked before, T does not reach them; and those of tag g need G = g + 2, for which
// another advance, with a barrier of its own, must see T's slot. Under ThreadSanitizer, which knows
// no membarrier, and where it is missing, a pin is a sequentially consistent store.
//
// Progress. pin and unpin are one store each. try_advance never waits: a pinned thread that does
// not move on makes it return false, and retired memory waits meanwhile (MemoryStore counts it).
//
// Cost. A pin and an unpin are about a nanosecond each; an advance is a system call of 1 to 13 us,
// so it is tried only when some hundreds of cells wait.
#pragma once

#include <atomic>
#include <cassert>
#include <cstddef>
#include <cstdint>

#include "idem/pause_point.hpp"

namespace idem::memory {

namespace epoch {

// A line of its own: written by its thread at every pin.
struct alignas(64) Slot {
  std::atomic<std::uint64_t> pinned{0};  // 0, or the epoch its thread saw
  std::atomic<bool> taken{true};
  bool alone = false;  // in its stripe: nobody else writes there
  std::uint32_t stripe = 0;
  std::uint32_t writes = 0;  // its thread's only: see housekeeping.hpp
  Slot* next = nullptr;
};

inline constinit thread_local Slot* own = nullptr;
// `own` where a plain store pins; else, and before the thread's first pin, nullptr.
inline constinit thread_local Slot* plainly = nullptr;
alignas(64) inline std::atomic<std::uint64_t> now{1};
inline std::atomic<std::uint32_t> generation{0};

[[nodiscard]] Slot& seat() noexcept;  // the thread's, from now until it ends
void pin_otherwise() noexcept;        // its first pin, or one that takes more than a store
// A seat whose thread has ended, the first behind that one in the list (nullptr: of all), until
// leave_seat(); nullptr: there is none. As the next thread would it may use what is private to the
// seat's stripe.
[[nodiscard]] Slot* take_free_seat(const Slot* behind) noexcept;
void leave_seat(Slot& slot) noexcept;
// Of a thread that has pinned before.
[[nodiscard]] inline Slot& seat_taken() noexcept { return *own; }

}  // namespace epoch

// Pins the calling thread. One at a time to a thread. Never hold one across a caller's code.
class Pin {
 public:
  Pin() noexcept {
    epoch::Slot* const slot = epoch::plainly;
    if (slot == nullptr) [[unlikely]] {
      epoch::pin_otherwise();
      return;
    }
#ifdef IDEM_PAUSE_POINTS
    assert(slot->pinned.load(std::memory_order_relaxed) == 0);  // in tests: not in a release
#endif
    const std::uint64_t seen = epoch::now.load();
    IDEM_PAUSE_POINT("memory.pin");
    slot->pinned.store(seen, std::memory_order_relaxed);
    std::atomic_signal_fence(std::memory_order_seq_cst);  // pairs with membarrier: try_advance
    IDEM_PAUSE_POINT("memory.pinned");
  }
  ~Pin() { epoch::seat_taken().pinned.store(0, std::memory_order_release); }  // pairs: try_advance
  Pin(const Pin&) = delete;
  Pin& operator=(const Pin&) = delete;
};

[[nodiscard]] inline std::uint64_t current_epoch() noexcept { return epoch::now.load(); }

// What threads write often they write side by side, each in its stripe. The first kStripesAlone
// seats have one each, for whoever sits there: what only they write needs no atomic step. All
// further seats share the others.
inline constexpr std::size_t kStripesAlone = 48;
inline constexpr std::size_t kStripes = 64;
[[nodiscard]] inline std::size_t thread_stripe() noexcept { return epoch::seat_taken().stripe; }

// Adds to a counter of the calling thread's stripe, while pinned; what it was. relaxed: a gauge
template <class T>
T add_in_stripe(std::atomic<T>& counter, T more) noexcept {
  if (!epoch::seat_taken().alone) [[unlikely]]
    return counter.fetch_add(more, std::memory_order_relaxed);
  const T before = counter.load(std::memory_order_relaxed);
  counter.store(before + more, std::memory_order_relaxed);
  return before;
}

// One look at every thread's slot; true if the epoch moved.
bool try_advance() noexcept;

// Changes in every forked child, so that a store can tell it is not in its own process any more.
inline constexpr std::uint32_t kNoGeneration = ~0U;  // of no process
[[nodiscard]] inline std::uint32_t process_generation() noexcept {
  return epoch::generation.load(std::memory_order_relaxed);  // set before the child's own code
}

}  // namespace idem::memory
