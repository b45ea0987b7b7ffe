// The file descriptors a process is born with, and which of them it passes on.
#pragma once

#include <vector>

namespace idem::cli {

// First of all in main(). A closed 0, 1 or 2 would be given to the next file or socket that is
// opened, and what is meant for a person would be written into it: each is opened on /dev/null so
// that a write fails. Remembers what else this process was given.
void settle_descriptors();

// From 3 on, in order: what the shell gave us, and so what a command of ours may have. Everything
// else (a store's socket, say) is ours alone.
[[nodiscard]] const std::vector<int>& given_descriptors();

// In a child that is about to exec: marks all but `given` to be closed by it.
// Async-signal-safe.
void keep_only(const std::vector<int>& given);

// Closes everything else, 0 to 2 included. Async-signal-safe.
void close_all_but(int kept);

}  // namespace idem::cli
