// The books of a round: what every key went through, so that afterwards it can be proved that each
// ran exactly once and that every replay was the first result.
#pragma once

#include <atomic>
#include <cstdint>
#include <string>
#include <vector>

#include "idem/outcome.hpp"

namespace idem::bench {

// What was proved, and what was not. All counts are of keys unless said otherwise.
struct Checks {
  std::uint64_t keys = 0;            // that some call got an answer about
  std::uint64_t once = 0;            // ran exactly once, crashed attempts apart
  std::uint64_t executed_twice = 0;  // ran again though no attempt had crashed or lost its lease
  std::uint64_t never_executed = 0;  // answered as running or done, but nobody ran it
  std::uint64_t replays = 0;         // answers: all replays
  std::uint64_t wrong_replays = 0;   // answers: replays of anything but the first result
  std::uint64_t lost_records = 0;    // completed, and the store does not hold that result any more
  std::uint64_t left_processing = 0;
  std::uint64_t refused_completes = 0;  // answers: an owner in good standing was turned away
  std::uint64_t unsettled =
      0;  // a call ended in `unknown`, or no complete came through: no verdict

  void add(const Checks& other);
  [[nodiscard]] bool hold() const;
  // One phrase for each kind of violation: "3 keys executed twice".
  [[nodiscard]] std::vector<std::string> violations() const;
};

// Thread safe, lock-free; the order of a key's entries does not matter. 48 bytes a key.
// Checks::replays is counted elsewhere.
class Ledger {
 public:
  explicit Ledger(std::uint32_t keys) : accounts_(keys) {}

  void claimed(std::uint32_t key, ClaimKind kind);
  // The claim's owner walks away.
  void crashed(std::uint32_t key);
  void completed(std::uint32_t key, std::uint64_t fence);
  // The owner came back after its lease, and another attempt had taken over.
  void lost(std::uint32_t key);
  // Complete was refused although the lease was not over, or in a way a correct store never does.
  void refused(std::uint32_t key);
  void in_progress(std::uint32_t key);
  // `fence`: of the attempt whose result it is; 0: these bytes are no result of this key.
  void replayed(std::uint32_t key, std::uint64_t fence);
  // What the store did is not known to the caller.
  void unsettled(std::uint32_t key);

  // --- after the round, in one thread
  // What the store holds in the end.
  enum class Held : std::uint8_t { nothing, processing, first_result, other };
  [[nodiscard]] bool touched(std::uint32_t key) const;
  [[nodiscard]] std::uint64_t completed_fence(std::uint32_t key) const;
  void audit(std::uint32_t key, Held held, Checks& into) const;
  [[nodiscard]] std::uint32_t keys() const { return static_cast<std::uint32_t>(accounts_.size()); }

 private:
  struct Account {
    std::atomic<std::uint32_t> fresh{0};        // claims given as fresh
    std::atomic<std::uint32_t> runs{0};         // claims given
    std::atomic<std::uint32_t> excused{0};      // runs that ended without a result: crashed, lost
    std::atomic<std::uint32_t> completions{0};  // successful completes
    std::atomic<std::uint32_t> unsettled{0};
    std::atomic<std::uint32_t> refused{0};
    std::atomic<std::uint32_t> strange{0};  // replays of another result than the first one seen
    std::atomic<bool> answered{false};
    std::atomic<std::uint64_t> completed_fence{0};
    std::atomic<std::uint64_t> replayed_fence{0};
  };

  std::vector<Account> accounts_;
};

}  // namespace idem::bench
