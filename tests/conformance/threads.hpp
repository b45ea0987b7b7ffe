// Threads for the cases that race.
#pragma once

#include <cstddef>
#include <functional>
#include <thread>
#include <vector>

namespace idem::conformance {

// True under ThreadSanitizer: fewer rounds, every interleaving still possible.
#if defined(__SANITIZE_THREAD__)
inline constexpr bool kSlowBuild = true;
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
inline constexpr bool kSlowBuild = true;
#else
inline constexpr bool kSlowBuild = false;
#endif
#else
inline constexpr bool kSlowBuild = false;
#endif

// Runs work(0) ... work(count - 1), each in a thread of its own; returns when all are done.
inline void in_threads(std::size_t count, const std::function<void(std::size_t)>& work) {
  std::vector<std::jthread> threads;
  threads.reserve(count);
  for (std::size_t i = 0; i < count; ++i) threads.emplace_back([&work, i] { work(i); });
}

}  // namespace idem::conformance
