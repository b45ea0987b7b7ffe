#include "contention/service_asker.hpp"

#include "contention/counting_store.hpp"

namespace idem::bench {

namespace {

void remove_tenant(IdempotencyStore& store, const std::string& tenant) {
  ListQuery query;
  query.tenant = tenant;
  query.limit = 500;
  do {
    const auto page = store.list(query);
    if (!page) return;  // what stays is gone when its lease and its keep are over: minutes
    std::vector<Remove> removes;
    for (const Listed& one : page->items) removes.push_back({one.key, one.record.version, {}});
    if (!removes.empty()) store.remove(removes);
    query.cursor = page->cursor;
  } while (!query.cursor.empty());
}

}  // namespace

ServiceOptions contention_options(Clock& clock) {
  ServiceOptions options;
  options.policy.lease = kContentionLease;
  options.policy.stuck_after = kContentionLease;
  options.policy.result_ttl = kContentionLease;
  options.timeout = std::chrono::seconds(30);  // also for what waits in a long queue
  options.clock = &clock;
  return options;
}

ServiceAsker::ServiceAsker(const StorePtr& store, Clock& clock, bool counts)
    : service_(counts ? store : std::make_shared<CountingStore>(store), contention_options(clock)) {
}

Heard ServiceAsker::claim(const Request& request) {
  const std::uint64_t before = trips_of_this_thread();
  auto outcome = service_.claim(request);
  costs_.trips += trips_of_this_thread() - before;
  if (!outcome) {
    trouble_ = outcome.error().message;
    return Heard::failed;
  }
  if (auto* claimed = std::get_if<Claimed>(&*outcome)) {
    lease_.emplace(std::move(claimed->lease));
    return Heard::won;
  }
  if (std::holds_alternative<InProgress>(*outcome)) return Heard::running;
  if (auto* replay = std::get_if<Replay>(&*outcome)) {
    result_ = std::move(replay->result);
    return Heard::done;
  }
  trouble_ = "an outcome that no claim of this load can have";
  return Heard::failed;
}

bool ServiceAsker::complete(std::string_view result) {
  const std::uint64_t before = trips_of_this_thread();
  const auto outcome = service_.complete(*lease_, result);
  costs_.trips += trips_of_this_thread() - before;
  lease_.reset();
  return outcome && std::holds_alternative<Completed>(*outcome);
}

Contender store_contender(const Place& place, Clock& clock) {
  Contender made;
  made.name = place.name;
  made.how = "the store behind the service: one claim, autocommit";
  made.durability = place.fixture.store->capabilities().durability;
  const StorePtr store = place.fixture.store;
  made.enter = [store, &clock, counts = place.counts_itself]() -> result<std::unique_ptr<Asker>> {
    return std::make_unique<ServiceAsker>(store, clock, counts);
  };
  if (!place.is_private) {
    made.tidy = [store](const std::string& tenant) { remove_tenant(*store, tenant); };
  }
  return made;
}

}  // namespace idem::bench
