// What is measured, and the requests for it, made before the clock starts: each thread's keys lie
// one after the other in the order it will ask for them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "peers/table.hpp"

namespace idem::bench {

enum class Workload : std::uint8_t {
  claim,   // W1: keys of their own, into a prepared table
  grow,    // W2: the same, from empty
  cycle,   // W3: claim, and complete the key claimed 64 claims before
  replay,  // W4: finished keys, uniformly
  hot,     // W5: one finished key
  same,    // W6: all threads claim the same keys in the same order
  zipf,    // W7: 95 % replays, zipf 0.99; 5 % new claims
  steady,  // W8: claims that live as long as `records` further ones; 16 lives
  lapse,   // claims while `records` finished ones expire, all in one millisecond; ours only
  memory,  // what a record takes: claimed, grown from empty; then finished
  churn,   // one thread, claims with a TTL at a set rate for some seconds: is resident memory flat?
};

struct Plan {
  Workload workload = Workload::claim;
  std::size_t records = 1'000'000;
  std::size_t threads = 2;
  std::size_t batch = 1;
  bool latency = false;        // time each call, at about 20 ns a call
  bool fifo = false;           // the timed threads before all ordinary work of the machine
  std::size_t seconds = 600;   // churn: for how long,
  std::size_t rate = 250'000;  // and how many claims in each
};

[[nodiscard]] std::string_view name_of(Workload workload);
[[nodiscard]] bool workload_of(std::string_view name, Workload& workload);

// One thread's requests, in order.
struct Stream {
  std::string keys;
  std::vector<bool> is_claim;  // zipf only
  std::uint64_t sum = 0;       // of key_sum over the replays: what the results must add up to

  [[nodiscard]] const char* key(std::size_t i) const { return keys.data() + i * kKeyBytes; }
  [[nodiscard]] std::size_t size() const { return keys.size() / kKeyBytes; }
};

struct Requests {
  std::string finished;  // claimed and completed before the clock starts
  std::vector<Stream> streams;

  explicit Requests(const Plan& plan);
  [[nodiscard]] std::size_t finished_count() const { return finished.size() / kKeyBytes; }
};

// A number drawn from a key's text, or from the result that begins with it.
[[nodiscard]] inline std::uint64_t key_sum(const char* text) {
  std::uint64_t word = 0;
  std::memcpy(&word, text, sizeof(word));
  return word;
}

inline constexpr std::size_t kLives = 16;           // of `steady`
inline constexpr std::size_t kHotAsks = 4'000'000;  // of each thread

// The virtual length of lives; of `steady`'s and `churn`'s: a microsecond to a claim.
[[nodiscard]] inline Micros life_of(const Plan& plan) {
  if (plan.workload == Workload::steady || plan.workload == Workload::churn)
    return Micros(plan.records);
  if (plan.workload == Workload::lapse) return std::chrono::minutes(1);
  return std::chrono::hours(24);
}

}  // namespace idem::bench
