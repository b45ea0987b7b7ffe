// When a holder stops believing in its lease.
#pragma once

#include <algorithm>

#include "idem/time.hpp"

namespace idem {

// execute() calls a lease lost that long before its end, if no renewal was confirmed: time for the
// action to end in while nobody else may run yet.
[[nodiscard]] constexpr Micros lease_margin(Micros lease) {
  return std::min<Micros>(lease / 10, std::chrono::seconds(1));
}

}  // namespace idem
