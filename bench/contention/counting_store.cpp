#include "contention/counting_store.hpp"

namespace idem::bench {
namespace {

thread_local std::uint64_t trips = 0;

}  // namespace

std::uint64_t trips_of_this_thread() noexcept { return trips; }

void CountingStore::insert(std::span<Insert> ops) {
  ++trips;
  behind_->insert(ops);
}

void CountingStore::replace(std::span<Replace> ops) {
  ++trips;
  behind_->replace(ops);
}

void CountingStore::load(std::span<Load> ops) {
  ++trips;
  behind_->load(ops);
}

void CountingStore::remove(std::span<Remove> ops) {
  ++trips;
  behind_->remove(ops);
}

result<std::uint64_t> CountingStore::sweep(std::size_t limit) { return behind_->sweep(limit); }

result<Page> CountingStore::list(const ListQuery& query) { return behind_->list(query); }

result<StoreStats> CountingStore::stats() { return behind_->stats(); }

const Capabilities& CountingStore::capabilities() const noexcept { return behind_->capabilities(); }

bool CountingStore::watch(KeyRef key, std::function<void()> changed) {
  return behind_->watch(key, std::move(changed));
}

}  // namespace idem::bench
