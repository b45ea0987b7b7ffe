// What one client did: counted, timed and told to the ledger. Makes no calls itself; blocking and
// asynchronous clients are judged by this alike.
#pragma once

#include <deque>
#include <optional>
#include <string>

#include "idem/service.hpp"
#include "load/round.hpp"

namespace idem::bench {

// Used by one client at a time. Borrows everything it is given.
class Account {
 public:
  Account(const RoundTask& task, Ledger& ledger);

  // A claim that was sent just now.
  struct Sent {
    Operation operation;
    Nanos due = 0;  // when it should have been sent; 0: closed loop
    Nanos at = 0;
  };
  [[nodiscard]] Sent send(const Operation& operation, Nanos due);

  // What was answered. A lease to be completed, unless the claim was not won, or is to crash.
  [[nodiscard]] std::optional<Lease> claimed(const Sent& sent, result<ClaimOutcome> outcome);

  // What is to be completed with: valid until the next call.
  [[nodiscard]] const std::string& result_for(const Sent& sent, const Lease& lease);
  // What a complete sent at `at` was answered with; it may have been repeated `tries` times.
  // False: it is to be repeated, as an application would where the store refused to serve.
  [[nodiscard]] bool completed(const Sent& sent, const Lease& lease,
                               const result<CompleteOutcome>& outcome, Nanos at, int tries);

  // The next key that crashed and whose lease is over; a crashed key is claimed again by whoever
  // let it crash.
  [[nodiscard]] std::optional<Operation> lapsed();
  // After the end: what still has to be recovered, and when the first of it can be.
  struct Crashed {
    std::uint32_t key;
    Nanos lapses;
  };
  [[nodiscard]] std::deque<Crashed> take_crashed();
  // Somebody else took over and is at work, or crashed in turn.
  void wait_again(std::uint32_t key);

  [[nodiscard]] RoundResult& figures() { return result_; }
  [[nodiscard]] const Request& request_for(const Sent& sent) const {
    return (*task_.requests)[sent.operation.key];
  }

 private:
  void note_error(const Error& error);
  void note_latency(Role role, Nanos sent, Nanos answered, Nanos due);

  const RoundTask& task_;
  Ledger& ledger_;
  const Nanos lease_;
  std::deque<Crashed> crashed_;
  std::string bytes_;
  RoundResult result_;
};

}  // namespace idem::bench
