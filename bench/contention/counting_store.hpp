// A store that counts what its calling thread asks of it.
#pragma once

#include <cstdint>

#include "idem/store.hpp"

namespace idem::bench {

// Calls to any CountingStore by this thread so far.
[[nodiscard]] std::uint64_t trips_of_this_thread() noexcept;

// As thread safe as the store behind it.
class CountingStore final : public IdempotencyStore {
 public:
  explicit CountingStore(StorePtr behind) : behind_(std::move(behind)) {}

  void insert(std::span<Insert> ops) override;
  void replace(std::span<Replace> ops) override;
  void load(std::span<Load> ops) override;
  void remove(std::span<Remove> ops) override;
  result<std::uint64_t> sweep(std::size_t limit) override;
  result<Page> list(const ListQuery& query) override;
  result<StoreStats> stats() override;
  [[nodiscard]] const Capabilities& capabilities() const noexcept override;
  bool watch(KeyRef key, std::function<void()> changed) override;

 private:
  StorePtr behind_;
};

}  // namespace idem::bench
