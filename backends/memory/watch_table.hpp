// Who wants to be told that a record changed.
//
// Layout. A fixed array of stacks of callbacks, chosen by the key's hash.
// Invariants. A stack is only pushed to and detached whole, so it has no ABA; a detached entry
// belongs to whoever detached it.
// Linearization. watch: the CAS that pushes. notify: the exchange that detaches.
// Nobody is missed: watch() pushes, then its caller loads the record; a writer changes the record,
// then looks at the stack. All four are seq_cst, so at least one sees the other.
// Progress. A writer whose stack is empty pays one load. Callbacks run in the thread that detached
// them, outside any pin; they may call the store, and watch again.
//
// A waiter that gave up leaves its callback behind. So that those do not pile up, a stack that
// reaches its bound is called out for no reason (IdempotencyStore::watch allows that): who still
// waits comes back. Each time the bound doubles, up to kBoundMax, so that many true waiters are not
// woken over and over; a change brings it back to kBoundMin.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>

namespace idem::memory {

class WatchTable {
 public:
  static constexpr std::size_t kStacks = 1024;
  static constexpr std::uint32_t kBoundMin = 256;
  static constexpr std::uint32_t kBoundMax = 65536;

  WatchTable() : stacks_(std::make_unique<std::array<Stack, kStacks>>()) {}
  ~WatchTable();
  WatchTable(const WatchTable&) = delete;
  WatchTable& operator=(const WatchTable&) = delete;

  // False: no memory for it.
  [[nodiscard]] bool watch(std::uint64_t hash, std::function<void()> changed) noexcept;
  // After the change is visible, and not pinned.
  void notify(std::uint64_t hash) noexcept {
    if (stack(hash).top.load() != nullptr) [[unlikely]]
      notify_waiting(stack(hash));
  }

  [[nodiscard]] std::size_t watchers() const;  // a gauge

 private:
  struct Entry {
    std::function<void()> changed;
    Entry* below = nullptr;
  };
  struct Stack {
    std::atomic<Entry*> top{nullptr};
    std::atomic<std::uint32_t> pushed{0};  // since it was last detached, roughly
    std::atomic<std::uint32_t> bound{kBoundMin};
  };
  [[nodiscard]] Stack& stack(std::uint64_t hash) const { return (*stacks_)[hash % kStacks]; }
  static void notify_waiting(Stack& stack) noexcept;
  static void call_out(Stack& stack) noexcept;

  std::unique_ptr<std::array<Stack, kStacks>> stacks_;
};

}  // namespace idem::memory
