// One round: so many clients work on a plan against one store, and what they did is audited.
//
// Closed loop: each client sends its next operation when the last one was answered; that shows what
// a store can do. Open loop (Workload::rate): operation i is due i/rate after the start, whether or
// not the store keeps up; that shows how long callers wait. There the corrected latency counts from
// the due time, so that a stall is felt by all whom it kept waiting; the uncorrected one counts
// from when the client at last got round to sending.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <map>
#include <string>

#include "idem/clock.hpp"
#include "idem/store.hpp"
#include "load/histogram.hpp"
#include "load/ledger.hpp"
#include "load/payload.hpp"
#include "load/plan.hpp"
#include "load/requests.hpp"

namespace idem::bench {

// Whose latency: mixing them would hide what is to be measured.
enum class Role : std::uint8_t {
  winner,       // claims given for a new key
  replay,       // claims answered with the first result
  in_progress,  // claims turned away
  takeover,     // claims given past a lapsed lease
  complete,     // completes
  kCount,
};
[[nodiscard]] std::string_view to_string(Role role) noexcept;
inline constexpr std::size_t kRoles = static_cast<std::size_t>(Role::kCount);
using Latencies = std::array<Histogram, kRoles>;

struct RoundTask {
  const Workload* workload = nullptr;
  const Plan* plan = nullptr;
  const Requests* requests = nullptr;  // scoped for this round
  const Payload* payload = nullptr;
  std::uint32_t clients = 1;
  Micros time{};              // at most; a plan that ends earlier ends the round
  bool audit = true;          // false: count and time only
  bool remove_after = false;  // take the round's records away again: the store is not ours
};

struct RoundResult {
  std::uint64_t attempted = 0;  // operations begun
  std::uint64_t succeeded =
      0;                      // answered, and where the claim was won, completed or crashed as told
  std::uint64_t planned = 0;  // open loop: operations that fell due in the time
  Nanos elapsed = 0;          // first send to last answer
  Nanos cpu = 0;              // of the client threads; an embedded store's work is among it
  Latencies uncorrected;
  Latencies corrected;                          // open loop only
  Histogram lag;                                // open loop: how late the sends were
  std::map<std::string, std::uint64_t> errors;  // by code; a repeated complete counts each time
  std::uint64_t crashes = 0;
  Checks checks;

  void add(const RoundResult& other);  // histograms and counts; elapsed and cpu are summed
  [[nodiscard]] double rate() const;   // succeeded per second
  [[nodiscard]] std::uint64_t error_count() const;
};

// `stop`: set from outside (a signal) it ends the round early; what was done still counts.
// Runs `clients` threads, or one if they are asynchronous. The clock is the machine's: a round is a
// measurement.
[[nodiscard]] RoundResult run_round(const RoundTask& task, const StorePtr& store, Clock& clock,
                                    const std::atomic<bool>& stop);

}  // namespace idem::bench
