// A store that is opened once its place can be reached.
#pragma once

#include <functional>
#include <string>

#include "idem/store.hpp"

namespace idem::tiered {

// Every call is `unavailable` at once until `open` has succeeded: a thread of its own tries that,
// again and again, until it has, or the store goes. `backend`: what capabilities() name meanwhile.
[[nodiscard]] StorePtr make_late_store(std::string backend, std::function<result<StorePtr>()> open);

}  // namespace idem::tiered
