// The configuration that goes with a recommendation.
#include <fmt/core.h>

#include "choose/choose.hpp"
#include "idem/store_url.hpp"

namespace idem::bench {
namespace {

struct Written {
  std::string store;   // the value of `store`
  std::string remark;  // comment lines before it, each ending in '\n'
};

Written redis_with(Durability tier) {
  if (tier == Durability::none)
    return {"redis://127.0.0.1:6379/0", "  # put your server here; it was measured without AOF\n"};
  return {fmt::format("redis://127.0.0.1:6379/0?min_durability={}", to_string(tier)),
          fmt::format("  # put your server here; it was measured with appendonly yes, "
                      "appendfsync {}\n",
                      tier == Durability::power ? "always" : "no")};
}

Written mysql_with(Durability tier) {
  const char* const flush = tier == Durability::power     ? "1"
                            : tier == Durability::process ? "2"
                                                          : "0";
  return {"mysql://idem:password@127.0.0.1:3306/app",
          fmt::format("  # put your server and password here; it was measured with\n"
                      "  # innodb_flush_log_at_trx_commit = {}\n",
                      flush)};
}

Written store_of(const Candidate& chosen) {
  if (chosen.store.find(':') != std::string::npos) {
    const auto url = StoreUrl::parse(chosen.store);
    const bool hidden = url && !url->password().empty();
    return {chosen.store, hidden ? "  # the password is hidden here: put it in\n" : ""};
  }
  const std::string backend = chosen.store.substr(0, chosen.store.find('/'));
  if (backend == "memory") return {"'memory:'", ""};
  if (backend == "sqlite")
    return {chosen.durability == Durability::power ? "sqlite:idem.db"
                                                   : "sqlite:idem.db?synchronous=normal",
            ""};
  if (backend == "redis") return redis_with(chosen.durability);
  if (backend == "mysql") return mysql_with(chosen.durability);
  if (backend == "tiered") return {"{front: 'memory:', back: 'sqlite:idem.db'}", ""};
  return {backend + ":", "  # put your store's URL here\n"};
}

}  // namespace

std::string config_for(const Candidate& chosen, const Needs& needs) {
  const Written store = store_of(chosen);
  return fmt::format(
      "# chosen by idem bench choose for {} process(es), {} host(s), tier '{}'\n"
      "idempotency:\n"
      "{}"
      "  store: {}\n"
      "  redis_ttl: 30s                 # the lease: longer than your business takes\n"
      "  db_timeout_clean_seconds: 600  # when a silent attempt is given up\n"
      "  result_ttl: 24h                # longer than the sender's longest retry\n"
      "  return_original_result: true\n",
      needs.processes, needs.hosts, to_string(needs.durability), store.remark, store.store);
}

}  // namespace idem::bench
