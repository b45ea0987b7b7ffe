// The contract of idem/store.hpp, written to be read: one map, one mutex, no cleverness. What every
// other store is compared with.
#pragma once

#include <map>
#include <mutex>
#include <vector>

#include "idem/clock.hpp"
#include "idem/store.hpp"

namespace idem::testing {

// Borrows the clock. Keeps every version ever given, so it never frees memory: for tests only.
class ReferenceStore final : public IdempotencyStore {
 public:
  explicit ReferenceStore(Clock& clock);

  void insert(std::span<Insert> ops) override;
  void replace(std::span<Replace> ops) override;
  void load(std::span<Load> ops) override;
  void remove(std::span<Remove> ops) override;
  result<std::uint64_t> sweep(std::size_t limit) override;
  result<Page> list(const ListQuery& query) override;
  result<StoreStats> stats() override;
  [[nodiscard]] const Capabilities& capabilities() const noexcept override { return capabilities_; }
  bool watch(KeyRef key, std::function<void()> changed) override;

 private:
  using Watchers = std::vector<std::function<void()>>;

  // The next version of `key`; remembers it for good.
  std::uint64_t next_version(const Key& key, std::uint64_t fence, Time now);
  Record made(const Key& key, const Draft& draft, const Record* before, Time now);
  void take_watchers(const Key& key, Watchers& into);

  Clock& clock_;
  Capabilities capabilities_;
  std::mutex mutex_;  // guards all below
  std::map<Key, Record> records_;
  std::map<Key, std::uint64_t> versions_;  // the last one each key ever had
  std::map<Key, Watchers> watchers_;
};

}  // namespace idem::testing
