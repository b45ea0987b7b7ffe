// The process group of a command: the command, and what it started.
#pragma once

#include <sys/types.h>

namespace idem::cli {

// Passes on a signal that asks to end; what is stopped is continued, so that it can hear it.
// Async-signal-safe.
void ask_to_end(pid_t group, int signal);

// SIGKILL. Async-signal-safe.
void kill_group(pid_t group);

// Whether nobody is in it any more. The dead count until somebody has taken their exit status.
[[nodiscard]] bool group_is_empty(pid_t group);

// Whether the dead are all that is in it: nobody may ever take their exit status, if their parent
// left the group. Reads all of /proc; false if that shows nobody.
[[nodiscard]] bool only_dead_left(pid_t group);

}  // namespace idem::cli
