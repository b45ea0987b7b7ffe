// What a table must do to take part in the race: the job of an idempotency store, and nothing else.
//
// Every table is driven with the same requests through a Caller, one to a thread:
//
//   Caller(Table&)
//   Claim claim(key)                     insert if absent; else say what stands: in progress,
//   replay
//                                        (its 64 bytes copied out), mismatch; take over what
//                                        expired
//   bool complete(key, token)            the claim's owner stores the 64-byte result
//   const char* replay(key)              its result, copied into a buffer of the caller's; or
//   nullptr void expire(key)                     peers only: remove this key, it is dead (W8)
//   claim_batch(keys, n, claims), replay_batch(keys, n, each)     where it has calls for many keys
//
// A key is 36 bytes of text, used where it lies. Time is a word in memory, the same for all.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string_view>

#include "idem/clock.hpp"

#define XXH_INLINE_ALL
#include <xxhash.h>

namespace idem::bench {

inline constexpr std::size_t kKeyBytes = 36;
inline constexpr std::size_t kResultBytes = 64;
inline constexpr std::size_t kBatchMax = 64;

struct Key36 {
  std::array<char, kKeyBytes> text;
  friend bool operator==(const Key36& a, const Key36& b) {
    return std::memcmp(a.text.data(), b.text.data(), kKeyBytes) == 0;
  }
};
// Where the caller's text lies; alignment 1, so nothing is copied.
[[nodiscard]] inline const Key36& key_at(const char* text) {
  return *reinterpret_cast<const Key36*>(text);
}
struct Key36Hash {
  using is_avalanching = void;  // boost: no further mixing needed
  [[nodiscard]] std::size_t operator()(const Key36& key) const noexcept {
    return XXH3_64bits(key.text.data(), kKeyBytes);
  }
};

enum class Verdict : std::uint8_t { won, in_progress, replayed, mismatch, error };

struct Token {
  std::uint64_t version = 0;
  std::uint64_t fence = 0;
};
struct Claim {
  Verdict verdict = Verdict::error;
  Token token;
};

// The race's time: moved by the threads that run it, read by every table.
class RaceClock final : public Clock {
 public:
  [[nodiscard]] Time now() const noexcept override {
    return Time(Micros(micros_.load(std::memory_order_relaxed)));  // a clock orders nothing
  }
  [[nodiscard]] std::unique_ptr<Timers> timers() override { return nullptr; }
  void pause(Micros) override {}
  [[nodiscard]] Micros offset() const noexcept override { return {}; }
  void advance(Micros by) { micros_.fetch_add(by.count(), std::memory_order_relaxed); }

 private:
  alignas(64) std::atomic<std::int64_t> micros_{kVirtualStart.time_since_epoch().count()};
};
[[nodiscard]] RaceClock& race_clock();

struct Setup {
  std::size_t records = 0;  // to make room for beforehand; 0: grow
  Micros keep{};            // how long a record lives
};

// What every request's fingerprint is, and the 64 bytes that are the result of the key `text`.
[[nodiscard]] const std::array<std::uint8_t, 32>& request_fingerprint();
inline void result_of(const char* text, char* into) {
  std::memcpy(into, text, kKeyBytes);
  std::memset(into + kKeyBytes, 'r', kResultBytes - kKeyBytes);
}

}  // namespace idem::bench
