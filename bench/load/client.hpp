// One client of a round: a thread that claims and completes.
#pragma once

#include "load/account.hpp"

namespace idem::bench {

// Used by one thread at a time. Borrows everything it is given.
class Client {
 public:
  Client(const RoundTask& task, IdempotencyService& service, Ledger& ledger, std::uint32_t number,
         const std::atomic<bool>& stop);

  // From `start` on; returns when time or plan are over. elapsed is from `start` to its last
  // answer.
  void work(Nanos start);
  // Takes over what this client let crash, once the leases are over. Not part of the throughput.
  void recover_all();

  [[nodiscard]] std::uint32_t number() const { return number_; }
  [[nodiscard]] Account& account() { return account_; }
  [[nodiscard]] RoundResult& result() { return account_.figures(); }

 private:
  void operate(const Operation& operation, Nanos due);
  void wait_until(Nanos at);

  const RoundTask& task_;
  IdempotencyService& service_;
  const std::uint32_t number_;
  const std::atomic<bool>& stop_;
  Account account_;
};

}  // namespace idem::bench
