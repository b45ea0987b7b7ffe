// A private MariaDB that keeps less than every transaction: its log is flushed when it has time.
#pragma once

#include "idem/backend.hpp"

namespace idem::bench {

// `tier`: process (the log is written at each commit, and flushed once a second) or none (both once
// a second). unavailable, with the way to install one, where no server is installed.
[[nodiscard]] result<Fixture> private_mysql(Durability tier, const OpenOptions& options);

}  // namespace idem::bench
