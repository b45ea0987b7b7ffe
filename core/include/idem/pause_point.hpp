// Pause points: named places inside lock-free code where a test can freeze a thread.
//
// Compiled out unless IDEM_PAUSE_POINTS is defined (tests; never in a release build).
#pragma once

#ifdef IDEM_PAUSE_POINTS
#include <atomic>

namespace idem {

// Called at every pause point with its name; nullptr: nobody listens. Tests set it.
inline std::atomic<void (*)(const char* name)> pause_point_hook{nullptr};

}  // namespace idem

#define IDEM_PAUSE_POINT(name)                                                      \
  do {                                                                              \
    /* acquire: pairs with the store of the test that installs the hook */          \
    if (auto* idem_hook = ::idem::pause_point_hook.load(std::memory_order_acquire)) \
      idem_hook(name);                                                              \
  } while (false)
#else
#define IDEM_PAUSE_POINT(name) static_cast<void>(0)
#endif
