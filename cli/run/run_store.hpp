// Where `idem run` keeps its records when nobody says: a file of the user's own.
#pragma once

#include "context.hpp"

namespace idem::cli {

// The file's URL; empty if there is no such file yet, or no place for it.
[[nodiscard]] std::string existing_run_store();

// --store or IDEM_STORE, else $XDG_STATE_HOME/idem/run.db (~/.local/state/idem/run.db), which is
// made with its directory. What there is to tell about the place goes to `news`: a cron job says
// nothing every night. A store that no other process can see is refused: it would forget before the
// next run.
[[nodiscard]] StorePtr open_run_store(const Context& context, std::string& from, std::string& news);

}  // namespace idem::cli
