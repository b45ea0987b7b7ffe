#include "contention/contender.hpp"

#include <algorithm>

namespace idem::bench {

void Costs::add(const Costs& other) {
  trips += other.trips;
  lock_waits += other.lock_waits;
  retries += other.retries;
  deadlocks += other.deadlocks;
  ids += other.ids;
}

Costs Costs::since(const Costs& before) const {
  return {trips - before.trips, lock_waits - before.lock_waits, retries - before.retries,
          deadlocks - before.deadlocks, ids - before.ids};
}

std::vector<Contender> contenders_at(const Place& place, Clock& clock) {
  std::vector<Contender> all;
  for (auto* kind : {bare_sqlite, bare_redis, bare_mysql}) {
    for (Contender& bare : kind(place, clock)) all.push_back(std::move(bare));
  }
  const std::string against = all.empty() ? "" : all.front().name;
  all.push_back(store_contender(place, clock));
  all.back().against = against;
  for (auto* kind : {sqlite_transaction, mysql_transaction}) {
    for (Contender& inside : kind(place, clock)) {
      inside.against = against;
      all.push_back(std::move(inside));
    }
  }
  if (const auto count = mysql_counts(place)) {
    for (Contender& one : all) one.count = count;
  }
  return all;
}

void set_against(std::vector<Contender>& contenders) {
  for (Contender& tier : contenders) {
    if (!tier.against.empty() || !tier.name.starts_with("tiered")) continue;
    const std::size_t plus = tier.name.rfind('+');
    const std::string back = plus == std::string::npos ? "sqlite" : tier.name.substr(plus + 1);
    // A backend's default design is the first of its variants: "mysql" is "mysql/clustered".
    const auto bare =
        std::find_if(contenders.begin(), contenders.end(), [&](const Contender& other) {
          return other.against.empty() && (other.name.starts_with(back + " bare") ||
                                           other.name.starts_with(back + "/clustered bare"));
        });
    if (bare != contenders.end()) tier.against = bare->name;
  }
}

}  // namespace idem::bench
