// What is asked of a store: the shape of the load, apart from who is asked and for how long.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "idem/error.hpp"
#include "idem/time.hpp"

namespace idem::bench {

enum class KeyKind : std::uint8_t {
  unique,  // every operation names a new key
  zipf,    // few keys are named often, many seldom
  hot,     // all operations name the same few keys, evenly
};

struct KeyChoice {
  KeyKind kind = KeyKind::unique;
  std::uint32_t count = 0;  // zipf, hot: of how many keys
  double skew = 0.99;       // zipf: the exponent

  friend bool operator==(const KeyChoice&, const KeyChoice&) = default;
};

// "unique", "zipf:100000", "zipf:1000:1.2", "hot:64".
[[nodiscard]] result<KeyChoice> parse_key_choice(std::string_view text);
[[nodiscard]] std::string to_string(const KeyChoice& keys);

enum class Callers : std::uint8_t {
  blocking,  // a thread each
  async,     // coroutines on one thread
};
[[nodiscard]] std::string_view to_string(Callers callers) noexcept;

struct Workload {
  KeyChoice keys;
  double duplicates = 0;       // share of operations that repeat a recent one, [0, 1)
  double crashes = 0;          // share of claims that are never completed, [0, 1)
  std::uint32_t payload = 64;  // bytes of a result; at least kPayloadMin
  Micros work{};               // between claim and complete
  Micros lease = std::chrono::seconds(30);
  double rate = 0;  // operations/s, open loop; 0: closed loop
  Callers callers = Callers::blocking;
  std::uint64_t seed = 1;
  std::uint32_t operations = 100'000;  // in a round at most: the plan's length
};

// Room for what verification writes into each result.
inline constexpr std::uint32_t kPayloadMin = 16;

// invalid_argument naming what is out of range.
[[nodiscard]] result<void> check_workload(const Workload& workload);

}  // namespace idem::bench
