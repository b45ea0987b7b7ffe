// The signal that ends what a command of ours does itself, so that it can tidy up first.
#pragma once

#include <atomic>

#include "exit_code.hpp"

namespace idem::cli {

// While it lives, SIGINT and SIGTERM raise the flag; a second one ends the process as usual.
class StopOnSignal {
 public:
  StopOnSignal();
  ~StopOnSignal();
  StopOnSignal(const StopOnSignal&) = delete;
  StopOnSignal& operator=(const StopOnSignal&) = delete;
  [[nodiscard]] const std::atomic<bool>& flag() const;
  // For work that the last flag ended, by the signal that raised it.
  [[nodiscard]] static ExitCode exit_code();
};

}  // namespace idem::cli
