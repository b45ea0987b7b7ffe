// Private stores that keep what is asked for: the server or file is set to a durability tier.
#pragma once

#include "load/session.hpp"

namespace idem::bench {

// An empty store of that backend that keeps at least `tier`, if the backend can; else as much as it
// keeps by default. Of several settings that do, the cheapest.
[[nodiscard]] Subject private_subject(const std::string& backend, Durability tier, Clock& clock);

}  // namespace idem::bench
