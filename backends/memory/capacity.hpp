// The bounds of the whole store: how many records, and how many bytes they take.
#pragma once

#include <atomic>
#include <cstdint>

namespace idem::memory {

// Exact under any number of threads. What is not bounded costs nothing.
class Capacity {
 public:
  // 0: unbounded.
  Capacity(std::uint64_t max_entries, std::uint64_t max_bytes)
      : max_entries_(max_entries), max_bytes_(max_bytes) {}

  // Whether anything is: else reserve() and give_back() need not be called.
  [[nodiscard]] bool bounded() const { return (max_entries_ | max_bytes_) != 0; }

  // All or nothing; bytes may be negative.
  [[nodiscard]] bool reserve(std::int64_t entries, std::int64_t bytes) {
    if (!take(entries_, max_entries_, entries)) return false;
    if (take(bytes_, max_bytes_, bytes)) return true;
    give_back(entries, 0);
    return false;
  }

  void give_back(std::int64_t entries, std::int64_t bytes) {
    if (max_entries_ != 0 && entries != 0) entries_.fetch_sub(entries, std::memory_order_relaxed);
    if (max_bytes_ != 0 && bytes != 0) bytes_.fetch_sub(bytes, std::memory_order_relaxed);
  }

 private:
  // relaxed: the bound is on one word, whose modification order gives it exactly
  static bool take(std::atomic<std::int64_t>& used, std::uint64_t max, std::int64_t more) {
    if (max == 0 || more == 0) return true;
    std::int64_t seen = used.load(std::memory_order_relaxed);
    do {
      if (more > 0 && seen + more > static_cast<std::int64_t>(max)) return false;
    } while (!used.compare_exchange_weak(seen, seen + more, std::memory_order_relaxed));
    return true;
  }

  const std::uint64_t max_entries_;
  const std::uint64_t max_bytes_;
  alignas(64) std::atomic<std::int64_t> entries_{0};
  std::atomic<std::int64_t> bytes_{0};
};

}  // namespace idem::memory
