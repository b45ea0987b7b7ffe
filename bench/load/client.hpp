// One client of a round: a thread that claims and completes.
#pragma once

#include <atomic>
#include <deque>
#include <string>

#include "load/round.hpp"

namespace idem::bench {

// Used by one thread. Borrows everything it is given.
class Client {
 public:
  Client(const RoundTask& task, IdempotencyService& service, Ledger& ledger, std::uint32_t number,
         const std::atomic<bool>& stop);

  // From `start` on; returns when time or plan are over. The result's histograms and counts are
  // this client's; elapsed is from `start` to its last answer.
  void work(Nanos start);
  // Takes over what this client let crash, once the leases are over. Not part of the throughput.
  void recover_all();

  [[nodiscard]] RoundResult& result() { return result_; }

 private:
  struct Crashed {
    std::uint32_t key;
    Nanos lapses;
  };

  void closed_loop(Nanos start, Nanos end);
  void open_loop(Nanos start, Nanos end);
  // `due`: when the operation should have been sent; 0: closed loop. Returns when it was answered.
  Nanos operate(const Operation& operation, Nanos due);
  void recover_due();
  bool finish(std::uint32_t key, Lease& lease, Nanos claimed_at);
  bool settle(std::uint32_t key, Lease& lease, const CompleteOutcome& outcome, Nanos claimed_at);
  void note_error(const Error& error);
  void note_latency(Role role, Nanos sent, Nanos answered, Nanos due);
  void wait_until(Nanos at);

  const RoundTask& task_;
  IdempotencyService& service_;
  Ledger& ledger_;
  const std::uint32_t number_;
  const std::atomic<bool>& stop_;
  const Nanos lease_;
  std::deque<Crashed> crashed_;
  std::string bytes_;
  RoundResult result_;
};

}  // namespace idem::bench
