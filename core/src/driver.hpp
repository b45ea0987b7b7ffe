// The driver: performs what the state machine decides, for one call or a batch of them.
//
// Decide, write; if the store found another record than the one decided upon, decide again with
// that one; until no write is needed or the write took. A store's `unknown` is resolved by
// repeating the same write (it carries the same owner token) until the deadline.
#pragma once

#include <optional>
#include <span>

#include "idem/clock.hpp"
#include "idem/state_machine.hpp"

namespace idem::detail {

// One command on one record. Everything is borrowed until drive() returns.
struct Call {
  KeyRef key;
  const Command* command = nullptr;
  // What the record is believed to be: `known`, as it was at `known_at`; if null absent, unless
  // `load_first`. A wrong belief costs a round trip, never a wrong answer.
  const Record* known = nullptr;
  Time known_at{};
  bool load_first = false;
  Time deadline = Time::max();  // an earlier one than all calls' of drive()

  result<Outcome> answer = idem::fail(errc::internal, "not driven");
  Time now{};          // the store's, of the answer
  bool wrote = false;  // the answer is the fruit of a write, and
  Record written;      // this is what the store then held (nothing, for a removal)
};

struct DriveLimits {
  Clock& clock;
  Time deadline;  // of the clock; `unknown` is repeated until then
};

// Returns how many `unknown` answers were repeated. Calls on the same key take effect in order.
std::uint64_t drive(IdempotencyStore& store, std::span<Call> calls, const DriveLimits& limits);

}  // namespace idem::detail
