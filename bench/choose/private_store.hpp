// Private stores that keep what is asked for: the server or file is set to a durability tier.
#pragma once

#include <optional>
#include <string>

#include "load/session.hpp"

namespace idem::bench {

// An empty store of that backend that keeps at least `tier`, if the backend can; else as much as it
// keeps by default. Of several settings that do, the cheapest.
[[nodiscard]] Subject private_subject(const std::string& backend, Durability tier, Clock& clock);

// The highest tier that private_subject() can set such a store to; nullopt: it is as it is.
[[nodiscard]] std::optional<Durability> highest_tier(const std::string& backend);

}  // namespace idem::bench
