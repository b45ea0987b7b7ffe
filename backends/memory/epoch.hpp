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
// Progress. pin and unpin are one store each. try_advance never waits: a pinned thread that does
// not move on makes it return false, and retired memory waits meanwhile (MemoryStore counts it).
//
// No fence is used: ThreadSanitizer does not see fences. The seq_cst store of a pin costs a few
// nanoseconds; an asymmetric pin (membarrier) would save them, and blind the sanitizer.
#pragma once

#include <atomic>
#include <cstdint>

namespace idem::memory {

// Pins the calling thread. Nests. Never hold one across a caller's code.
class Pin {
 public:
  Pin();
  ~Pin();
  Pin(const Pin&) = delete;
  Pin& operator=(const Pin&) = delete;
};

[[nodiscard]] std::uint64_t current_epoch() noexcept;

// One look at every thread's slot; true if the epoch moved.
bool try_advance() noexcept;

// Changes in every forked child, so that a store can tell it is not in its own process any more.
[[nodiscard]] std::uint32_t process_generation() noexcept;

}  // namespace idem::memory
