// Counters that threads raise without sharing a cache line.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>

#include "idem/observer.hpp"

namespace idem::detail {

class CounterBank {
 public:
  void add(Counter counter, std::uint64_t n = 1) noexcept {
    // relaxed: a count orders nothing
    slots_[slot()].values[static_cast<std::size_t>(counter)].fetch_add(n,
                                                                       std::memory_order_relaxed);
  }

  [[nodiscard]] Counters snapshot() const noexcept {
    Counters sum;
    for (const Slot& one : slots_) {
      for (std::size_t i = 0; i < sum.values.size(); ++i) {
        sum.values[i] += one.values[i].load(std::memory_order_relaxed);
      }
    }
    return sum;
  }

 private:
  static constexpr std::size_t kSlots = 16;
  struct alignas(64) Slot {
    std::array<std::atomic<std::uint64_t>, static_cast<std::size_t>(Counter::kCount)> values{};
  };

  static std::size_t slot() noexcept {
    static std::atomic<std::size_t> next{0};
    thread_local const std::size_t mine = next.fetch_add(1, std::memory_order_relaxed) % kSlots;
    return mine;
  }

  std::array<Slot, kSlots> slots_;
};

}  // namespace idem::detail
