// A store that goes wrong on purpose: by script (the n-th call of a verb) or at random, from a
// seed.
//
// Every fault is one that a network or a full disk makes too, and keeps the contract: a healthy
// caller must come through. What breaks the contract is in tests/conformance/broken_stores.cpp.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <mutex>
#include <random>
#include <vector>

#include "idem/clock.hpp"
#include "idem/testing/forwarding_store.hpp"
#include "idem/testing/recording_store.hpp"

namespace idem::testing {

enum class Fault : std::uint8_t {
  none,
  refuse,        // unavailable: surely not applied
  busy,          // busy: surely not applied
  full,          // capacity: surely not applied
  lose_request,  // unknown: was not applied
  lose_reply,    // unknown: was applied
  apply_late,    // unknown: is applied only after the next call, when the caller has given up on it
  duplicate,     // applied twice; the answer is the second one's
  delay,         // the clock goes by first, then as usual
};

// How likely each insert, replace, load and remove meets each fault; the rest goes well. The sum is
// at most 1.
struct FaultRates {
  double refuse = 0;
  double lose_request = 0;
  double lose_reply = 0;
  double apply_late = 0;
  double duplicate = 0;
};

// Thread safe. A fault hits a whole call, as a lost connection does: every item of its batch.
class FaultStore final : public ForwardingStore {
 public:
  // `clock` is what Fault::delay lets go by.
  FaultStore(StorePtr behind, Clock& clock);
  ~FaultStore() override;  // what is late never comes

  // The `nth` call of `verb` from now on (1: the next one) meets `fault`.
  void on_call(Verb verb, std::uint64_t nth, Fault fault, Micros delay = Micros(0));
  // Every call of `verb` from now on, until calm().
  void on_every_call(Verb verb, Fault fault);
  // Runs `happens` just before the `nth` call of `verb` from now on: what another process may do
  // between two calls of this one. It may use the store behind this one.
  void before_call(Verb verb, std::uint64_t nth, std::function<void()> happens);
  void at_random(std::uint64_t seed, const FaultRates& rates);
  // No more faults; what is late is applied at once.
  void calm();

  // Calls that met a fault so far.
  [[nodiscard]] std::uint64_t faults() const;

  void insert(std::span<Insert> ops) override;
  void replace(std::span<Replace> ops) override;
  void load(std::span<Load> ops) override;
  void remove(std::span<Remove> ops) override;
  result<std::uint64_t> sweep(std::size_t limit) override;
  result<Page> list(const ListQuery& query) override;
  result<StoreStats> stats() override;

 private:
  struct Plan {
    Verb verb;
    std::uint64_t calls_left;  // 1: the next call; 0: every call
    Fault fault;
    Micros delay;
    std::function<void()> happens;
  };
  struct Met {
    Fault fault = Fault::none;
    Micros delay{};
    std::function<void()> happens;
  };

  Met next(Verb verb);
  Met roll(Verb verb);
  template <class Op>
  void run(Verb verb, std::span<Op> ops, void (IdempotencyStore::*call)(std::span<Op>));
  template <class T, class Call>
  result<T> run_whole(Verb verb, Call call);
  // What comes before a call: late ones that are due, hooks, delay. Outside the mutex.
  void prelude(const Met& met);
  void apply_late_ones();

  Clock& clock_;
  mutable std::mutex mutex_;  // guards all below
  std::vector<Plan> plans_;
  FaultRates rates_;
  std::mt19937_64 random_;
  bool at_random_ = false;
  std::uint64_t faults_ = 0;
  std::deque<std::function<void()>> late_;
  std::uint64_t young_ = 0;  // of late_: kept back by the call just before, not due yet
};

}  // namespace idem::testing
