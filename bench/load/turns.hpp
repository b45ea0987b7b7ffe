// The operations of one client, one after the other: which of the plan's are its own, and when each
// is due.
#pragma once

#include <atomic>
#include <optional>

#include "load/round.hpp"

namespace idem::bench {

// Used by one client. Borrows everything.
class Turns {
 public:
  // Client `number` of task.clients; from `start` on.
  Turns(const RoundTask& task, std::uint32_t number, Nanos start, const std::atomic<bool>& stop);

  struct Turn {
    Operation operation;
    Nanos due = 0;  // 0: closed loop, at once
  };
  // Counts what fell due in `result`. None: time or plan are over, or it was stopped.
  [[nodiscard]] std::optional<Turn> next(RoundResult& result);

 private:
  const RoundTask& task_;
  const std::atomic<bool>& stop_;
  const Nanos start_;
  const Nanos end_;
  const double gap_;  // between two operations of all clients; 0: closed loop
  std::size_t at_;
};

}  // namespace idem::bench
