#include "watch_table.hpp"

#include <algorithm>
#include <new>
#include <utility>

#include "idem/pause_point.hpp"

namespace idem::memory {

WatchTable::~WatchTable() {
  for (Stack& stack : *stacks_)
    for (Entry* entry = stack.top.load(); entry != nullptr;)
      delete std::exchange(entry, entry->below);
}

bool WatchTable::watch(std::uint64_t hash, std::function<void()> changed) noexcept {
  auto* const entry = new (std::nothrow) Entry{std::move(changed), nullptr};
  if (entry == nullptr) return false;
  Stack& s = stack(hash);
  entry->below = s.top.load();
  do {
    IDEM_PAUSE_POINT("memory.watch.push");
  } while (!s.top.compare_exchange_weak(entry->below, entry));
  // relaxed: both numbers are only a rule of thumb
  const std::uint32_t bound = s.bound.load(std::memory_order_relaxed);
  if (s.pushed.fetch_add(1, std::memory_order_relaxed) + 1 >= bound) {
    call_out(s);
    s.bound.store(std::min(bound * 2, kBoundMax), std::memory_order_relaxed);
  }
  return true;
}

void WatchTable::notify_waiting(Stack& stack) noexcept {
  IDEM_PAUSE_POINT("memory.watch.notify");
  call_out(stack);
  stack.bound.store(kBoundMin, std::memory_order_relaxed);
}

void WatchTable::call_out(Stack& stack) noexcept {
  stack.pushed.store(0, std::memory_order_relaxed);
  Entry* entry = stack.top.exchange(nullptr);
  Entry* first = nullptr;  // who came first is called first
  while (entry != nullptr) {
    Entry* const below = std::exchange(entry->below, first);
    first = std::exchange(entry, below);
  }
  while (first != nullptr) {
    const std::unique_ptr<Entry> called(std::exchange(first, first->below));
    called->changed();
  }
}

std::size_t WatchTable::watchers() const {
  std::size_t pushed = 0;
  for (const Stack& stack : *stacks_) pushed += stack.pushed.load(std::memory_order_relaxed);
  return pushed;
}

}  // namespace idem::memory
