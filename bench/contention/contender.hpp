// Who takes part in a contention: a way to claim a key, be it a store behind the service, a bare
// protocol without any library of ours, or a claim inside the business transaction.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "idem/backend.hpp"
#include "idem/service.hpp"

namespace idem::bench {

// What an asker heard about its claim.
enum class Heard : std::uint8_t {
  won,      // it is the first: it runs
  running,  // turned away: somebody else is at it (a bare protocol cannot tell that from done)
  done,     // the first result is there
  failed,   // no answer, or one that does not belong here
};

// What asking cost, beside time.
struct Costs {
  std::uint64_t trips = 0;       // calls to the store or statements, one by one
  std::uint64_t lock_waits = 0;  // waits for another's lock
  std::uint64_t retries = 0;     // transactions run again after a deadlock or a lock time-out
  std::uint64_t deadlocks = 0;   // transactions that the server undid to end a circle of waits
  std::uint64_t ids = 0;         // numbers taken from an AUTO_INCREMENT, whoever won

  void add(const Costs& other);
  [[nodiscard]] Costs since(const Costs& before) const;
};

// One client of a contender. Used by one thread.
class Asker {
 public:
  Asker() = default;
  Asker(const Asker&) = delete;
  Asker& operator=(const Asker&) = delete;
  virtual ~Asker() = default;

  virtual Heard claim(const Request& request) = 0;
  // Ends the claim that was won. False: it was not taken.
  virtual bool complete(std::string_view result) = 0;
  // Leaves the claim that was won as it is: what is open is closed, the key stays claimed.
  virtual void walk_away() {}

  // Of the last claim that heard `done`; a bare protocol that keeps no result: empty.
  [[nodiscard]] const std::string& result() const { return result_; }
  // Since the last call.
  [[nodiscard]] Costs take_costs() {
    const Costs taken = costs_;
    costs_ = {};
    return taken;
  }
  // Why the last claim failed.
  [[nodiscard]] const std::string& trouble() const { return trouble_; }

 protected:
  std::string result_;
  std::string trouble_;
  Costs costs_;
};

// A store that was opened, and what is known about it.
struct Place {
  std::string name;  // as it was asked for: "sqlite", "tiered/redis+sqlite", a URL
  Fixture fixture;
  bool is_private = true;
  bool counts_itself = false;  // its layers are CountingStores
  std::string authority = {};  // URL of a tier's last layer; "" if this is no private tier
};

// A private tier over private stores of these backends, front first: two at least.
[[nodiscard]] result<Place> counted_tier(std::string name, std::span<const std::string> layers,
                                         Clock& clock);

struct Contender {
  std::string name;     // "redis SET NX", "redis", "sqlite in transaction": unique
  std::string how;      // one sentence: what a claim is here
  std::string against;  // name of the bare protocol its rates are held against; "" for that itself
  Durability durability = Durability::none;
  bool keeps_result = true;  // false: a bare protocol that tells nobody what came of it
  std::string skipped;       // why it cannot take part; then `enter` is empty
  std::function<result<std::unique_ptr<Asker>>()> enter = {};
  // What the server counts by itself, since it started: what an asker cannot see from outside.
  // Empty where there is no such server, or where others use it, too.
  std::function<result<Costs>()> count = {};
  // Takes the records of a tenant away again: from a store that is not ours. May be empty.
  std::function<void(const std::string& tenant)> tidy = {};
};

// Bare protocols first: they are what the others are held against. Borrows `clock`; shares the
// place's store, whose owner must outlive the contenders.
[[nodiscard]] std::vector<Contender> contenders_at(const Place& place, Clock& clock);

// A tier has no bare protocol of its own: it is held against that of its back, if that takes part.
void set_against(std::vector<Contender>& contenders);

// --- the kinds, each in its own file
[[nodiscard]] Contender store_contender(const Place& place, Clock& clock);
// Empty where the backend has no such thing.
[[nodiscard]] std::vector<Contender> bare_sqlite(const Place& place, Clock& clock);
[[nodiscard]] std::vector<Contender> sqlite_transaction(const Place& place, Clock& clock);
[[nodiscard]] std::vector<Contender> mysql_transaction(const Place& place, Clock& clock);
[[nodiscard]] std::vector<Contender> bare_redis(const Place& place, Clock& clock);
[[nodiscard]] std::vector<Contender> bare_mysql(const Place& place, Clock& clock);

// Of a private MySQL or MariaDB: row locks waited for, deadlocks, ids. Else empty.
[[nodiscard]] std::function<result<Costs>()> mysql_counts(const Place& place);

// How long a claim of a contention lasts.
inline constexpr Micros kContentionLease = std::chrono::seconds(60);

}  // namespace idem::bench
