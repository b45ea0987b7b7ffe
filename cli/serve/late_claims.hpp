// Claims whose end the store did not tell in time: their client was answered 503 and their request
// was never forwarded, yet the store may have taken the claim down, or may still do so. Nobody
// would report on it: under `hold` its key would be in doubt for ever.
//
// Each is looked for, by its owner token, for a while: what is found is released, so that the
// client's next request runs. Looking only reads; it never stands in that request's way.
#pragma once

#include <functional>
#include <map>
#include <mutex>

#include "idem/service.hpp"
#include "metrics.hpp"

namespace idem::serve {

// How long a claim is looked for. A write may arrive that late through a network that was cut, or a
// server that stood still; a claim is given up only by a read that succeeds after this time.
inline constexpr Micros kLateClaimWatch = std::chrono::seconds(120);
// Memory: about 1 KB each. More are left to `idem key resolve`, and counted.
inline constexpr std::size_t kLateClaimsMax = 4096;

// Thread safe; one thread looks at a time.
class LateClaims {
 public:
  LateClaims(IdempotencyService& service, Metrics& metrics);

  // Called after watch(), by its caller: the first look is due soon. Set before the first watch().
  std::function<void()> on_watch = [] {};

  void watch(const Key& key, const Owner& owner);

  // Until the next look is due; a day if there is nothing to look for.
  [[nodiscard]] Micros until_due() const;

  // Looks for the claim that is most due, if one is: one or two calls of the store. False: none is
  // due, or the store could not be asked.
  bool look();

  // Once for each that is left, before the end; stops when the store cannot be asked, or at
  // `deadline`. What is not found by then is counted as given up.
  void look_for_the_last_time(Time deadline);

 private:
  struct Late {
    Key key;
    Owner owner;
    Time since{};
    Micros pause{};
  };
  enum class Seen : std::uint8_t { nothing, released, store_away };
  using ByTime = std::multimap<Time, Late>;  // by when the next look is due

  [[nodiscard]] Seen look_for(const Late& late);
  void tell_number();

  IdempotencyService& service_;
  Metrics& metrics_;
  mutable std::mutex mutex_;
  ByTime due_;  // guarded by mutex_
};

}  // namespace idem::serve
