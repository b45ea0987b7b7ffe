#include "late_store.hpp"

#include <condition_variable>
#include <memory>
#include <mutex>
#include <thread>
#include <utility>

namespace idem::tiered {
namespace {

// Between two tries. A front is to be used again within 2 s of its return.
constexpr Micros kPause = std::chrono::milliseconds(250);
// After a refusal, of a password for one: it does not get better by being asked often.
constexpr Micros kPauseRefused = std::chrono::milliseconds(2500);

class LateStore final : public IdempotencyStore {
 public:
  LateStore(std::string backend, std::function<result<StorePtr>()> open)
      : open_(std::move(open)), thread_([this] { try_until_open(); }) {
    capabilities_.backend = std::move(backend);
  }

  ~LateStore() override {
    {
      const std::lock_guard guard(mutex_);
      stopping_ = true;
    }
    stop_.notify_all();
    thread_.join();
  }

  void insert(std::span<Insert> ops) override { pass(ops, &IdempotencyStore::insert); }
  void replace(std::span<Replace> ops) override { pass(ops, &IdempotencyStore::replace); }
  void load(std::span<Load> ops) override { pass(ops, &IdempotencyStore::load); }
  void remove(std::span<Remove> ops) override { pass(ops, &IdempotencyStore::remove); }

  result<std::uint64_t> sweep(std::size_t limit) override {
    if (const StorePtr there = store()) return there->sweep(limit);
    return trouble();
  }
  result<Page> list(const ListQuery& query) override {
    if (const StorePtr there = store()) return there->list(query);
    return trouble();
  }
  result<StoreStats> stats() override {
    if (const StorePtr there = store()) return there->stats();
    return trouble();
  }
  // Of a store that is not there yet: nothing is promised.
  [[nodiscard]] const Capabilities& capabilities() const noexcept override { return capabilities_; }
  bool watch(KeyRef, std::function<void()>) override { return false; }

 private:
  template <class Op>
  void pass(std::span<Op> ops, void (IdempotencyStore::*method)(std::span<Op>)) {
    if (const StorePtr there = store()) return (*there.*method)(ops);
    const Error why = trouble();
    for (Op& op : ops) {
      op.answer.state = Answer::State::failed;
      op.answer.error = why;
    }
  }

  void try_until_open() {
    std::unique_lock lock(mutex_);
    while (!stopping_ && !store_) {
      lock.unlock();
      auto opened = open_();
      lock.lock();
      if (opened) {
        store_ = std::move(*opened);
      } else {
        const Error why = opened.error();
        trouble_ = why.message;
        stop_.wait_for(lock, why.code == errc::unavailable ? kPause : kPauseRefused,
                       [&] { return stopping_; });
      }
    }
  }

  [[nodiscard]] StorePtr store() const {
    const std::lock_guard guard(mutex_);
    return store_;
  }
  [[nodiscard]] Error trouble() const {
    const std::lock_guard guard(mutex_);
    return fail(errc::unavailable, "not open yet: " + trouble_);
  }

  const std::function<result<StorePtr>()> open_;
  Capabilities capabilities_;
  mutable std::mutex mutex_;  // guards all below
  std::condition_variable stop_;
  bool stopping_ = false;
  StorePtr store_;
  std::string trouble_;
  std::thread thread_;
};

}  // namespace

StorePtr make_late_store(std::string backend, std::function<result<StorePtr>()> open) {
  return std::make_shared<LateStore>(std::move(backend), std::move(open));
}

}  // namespace idem::tiered
