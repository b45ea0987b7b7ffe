// A store that writes down every call before it passes it on, and its answer afterwards.
#pragma once

#include <mutex>
#include <string>
#include <vector>

#include "idem/testing/forwarding_store.hpp"

namespace idem::testing {

enum class Verb : std::uint8_t { insert, replace, load, remove, sweep, list, stats };
[[nodiscard]] std::string_view to_string(Verb verb) noexcept;

// One item of one call.
struct RecordedItem {
  Verb verb{};
  std::uint64_t call = 0;  // items of one batch share it
  Key key;                 // empty for sweep, list and stats
  std::uint64_t expected = 0;
  Answer answer;
};

// Thread safe.
class RecordingStore final : public ForwardingStore {
 public:
  using ForwardingStore::ForwardingStore;

  void insert(std::span<Insert> ops) override;
  void replace(std::span<Replace> ops) override;
  void load(std::span<Load> ops) override;
  void remove(std::span<Remove> ops) override;
  result<std::uint64_t> sweep(std::size_t limit) override;
  result<Page> list(const ListQuery& query) override;
  result<StoreStats> stats() override;

  // Round trips so far; of one verb.
  [[nodiscard]] std::uint64_t calls() const;
  [[nodiscard]] std::uint64_t calls(Verb verb) const;
  [[nodiscard]] std::vector<RecordedItem> items() const;
  void clear();

 private:
  std::uint64_t begin(Verb verb);
  void note(RecordedItem item);

  mutable std::mutex mutex_;  // guards all below
  std::vector<std::uint64_t> calls_by_verb_ = std::vector<std::uint64_t>(7);
  std::uint64_t calls_ = 0;
  std::vector<RecordedItem> items_;
};

}  // namespace idem::testing
