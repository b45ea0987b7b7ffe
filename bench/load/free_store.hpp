// A store that costs nothing and keeps nothing: what remains is the price of the generator and of
// the service. A row that comes near it says more about them than about its store.
#pragma once

#include <atomic>

#include "idem/store.hpp"

namespace idem::bench {

// Every write is answered as written. Breaks the contract on purpose; never to be audited.
class FreeStore final : public IdempotencyStore {
 public:
  FreeStore();
  void insert(std::span<Insert> ops) override;
  void replace(std::span<Replace> ops) override;
  void load(std::span<Load> ops) override;
  void remove(std::span<Remove> ops) override;
  result<std::uint64_t> sweep(std::size_t limit) override;
  result<Page> list(const ListQuery& query) override;
  result<StoreStats> stats() override;
  [[nodiscard]] const Capabilities& capabilities() const noexcept override { return capabilities_; }

 private:
  Capabilities capabilities_;
};

}  // namespace idem::bench
