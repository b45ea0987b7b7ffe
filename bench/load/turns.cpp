#include "load/turns.hpp"

namespace idem::bench {

Turns::Turns(const RoundTask& task, std::uint32_t number, Nanos start,
             const std::atomic<bool>& stop)
    : task_(task),
      stop_(stop),
      start_(start),
      end_(start + nanos(task.time)),
      gap_(task.workload->rate > 0 ? 1e9 / task.workload->rate : 0),
      at_(number) {}

std::optional<Turns::Turn> Turns::next(RoundResult& result) {
  const auto& operations = task_.plan->operations;
  for (; at_ < operations.size(); at_ += task_.clients) {
    if (stop_.load(std::memory_order_relaxed)) break;
    const Nanos now = stopwatch();
    const Nanos due = gap_ > 0 ? start_ + static_cast<Nanos>(gap_ * static_cast<double>(at_)) : 0;
    if ((gap_ > 0 ? due : now) >= end_) break;
    if (gap_ > 0) {
      ++result.planned;
      // A store that cannot keep up must not lengthen the round without end.
      if (now > end_ + (end_ - start_)) continue;
    }
    const Turn turn{operations[at_], due};
    at_ += task_.clients;
    return turn;
  }
  return std::nullopt;
}

}  // namespace idem::bench
