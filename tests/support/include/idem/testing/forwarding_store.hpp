// A store that passes everything on to another one: the base of every decorator.
#pragma once

#include "idem/store.hpp"

namespace idem::testing {

// As thread safe as the store behind it, which it shares.
class ForwardingStore : public IdempotencyStore {
 public:
  explicit ForwardingStore(StorePtr behind) : behind_(std::move(behind)) {}

  void insert(std::span<Insert> ops) override { behind_->insert(ops); }
  void replace(std::span<Replace> ops) override { behind_->replace(ops); }
  void load(std::span<Load> ops) override { behind_->load(ops); }
  void remove(std::span<Remove> ops) override { behind_->remove(ops); }
  result<std::uint64_t> sweep(std::size_t limit) override { return behind_->sweep(limit); }
  result<Page> list(const ListQuery& query) override { return behind_->list(query); }
  result<StoreStats> stats() override { return behind_->stats(); }
  [[nodiscard]] const Capabilities& capabilities() const noexcept override {
    return behind_->capabilities();
  }
  bool watch(KeyRef key, std::function<void()> changed) override;

 protected:
  [[nodiscard]] IdempotencyStore& behind() { return *behind_; }

 private:
  StorePtr behind_;
};

}  // namespace idem::testing
