// Short forms of the store's verbs, for the tests of the memory backend.
#pragma once

#include <gtest/gtest.h>

#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "idem/clock.hpp"
#include "idem/memory_store.hpp"

#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
#define IDEM_SANITIZED 1
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer) || __has_feature(address_sanitizer)
#define IDEM_SANITIZED 1
#endif
#endif

namespace idem::memory_test {

using namespace std::chrono_literals;

#ifdef IDEM_SANITIZED
inline constexpr bool kSanitized = true;
#else
inline constexpr bool kSanitized = false;
#endif

// The full size, or a fraction of it where every step costs ten times as much.
[[nodiscard]] constexpr std::size_t scaled(std::size_t full, std::size_t divisor = 20) {
  return kSanitized ? full / divisor : full;
}

[[nodiscard]] inline std::string name(std::string_view stem, std::size_t i) {
  return std::string(stem) + "-" + std::to_string(i);
}

[[nodiscard]] inline Owner owner(std::uint8_t n) {
  Owner made;
  made.bytes.fill(n);
  return made;
}

[[nodiscard]] inline Draft claim(std::uint8_t by, Micros lease = 30s, Micros keep = 60s) {
  Draft draft;
  draft.owner = owner(by);
  draft.lease = lease;
  draft.keep = keep;
  return draft;
}

[[nodiscard]] inline Draft success(const Record& of, std::string_view result, Micros keep = 24h) {
  Draft draft;
  draft.request_hash = of.request_hash;
  draft.owner = of.owner;
  draft.fence = of.fence;
  draft.attempt = of.attempt;
  draft.status = Status::success;
  draft.fresh = false;
  draft.keep = keep;
  draft.result = result;
  return draft;
}

inline Answer insert(IdempotencyStore& store, const Key& key, const Draft& draft) {
  Insert op{key, draft, {}};
  store.insert({&op, 1});
  return op.answer;
}
inline Answer replace(IdempotencyStore& store, const Key& key, std::uint64_t expected,
                      const Draft& draft) {
  Replace op{key, expected, draft, {}};
  store.replace({&op, 1});
  return op.answer;
}
inline Answer load(IdempotencyStore& store, const Key& key) {
  Load op{key, {}};
  store.load({&op, 1});
  return op.answer;
}
inline Answer remove(IdempotencyStore& store, const Key& key, std::uint64_t expected) {
  Remove op{key, expected, {}};
  store.remove({&op, 1});
  return op.answer;
}

[[nodiscard]] inline bool written(const Answer& a) { return a.state == Answer::State::written; }
[[nodiscard]] inline bool stands(const Answer& a) { return a.state == Answer::State::stands; }
[[nodiscard]] inline bool absent(const Answer& a) { return a.state == Answer::State::absent; }

// A claim as the service makes it: insert, and take over what is expired or lapsed.
[[nodiscard]] inline bool claim_or_take_over(IdempotencyStore& store, const Key& key,
                                             const Draft& draft, Answer& answer) {
  answer = insert(store, key, draft);
  while (!written(answer)) {
    if (absent(answer)) {
      answer = insert(store, key, draft);
      continue;
    }
    if (!stands(answer)) return false;
    const Record& held = answer.held;
    const bool lapsed = held.status == Status::processing && answer.now >= held.lease_until;
    if (!held.expired(answer.now) && !lapsed) return false;
    answer = replace(store, key, held.version, draft);
  }
  return true;
}

// Runs `work(thread)` in so many threads, and waits for all.
template <class Work>
void in_threads(std::size_t count, Work work) {
  std::vector<std::thread> threads;
  threads.reserve(count);
  for (std::size_t t = 0; t < count; ++t) threads.emplace_back([work, t] { work(t); });
  for (std::thread& thread : threads) thread.join();
}

}  // namespace idem::memory_test
