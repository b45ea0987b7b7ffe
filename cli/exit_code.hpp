// The exit codes of the command: one table for people, scripts and tests.
#pragma once

#include "idem/service.hpp"

namespace idem::cli {

enum class ExitCode : int {
  done = 0,          // also: claimed
  check_failed = 1,  // a check said no: an expectation, a conflict
  usage = 2,         // the command line or the configuration
  not_found = 3,
  unreachable = 4,  // the store does not answer, refuses to serve, or answered too late
  refused = 5,      // for safety
  replay = 10,
  in_progress = 11,
  mismatch = 12,
  failed_before = 13,
  backoff = 14,
  in_doubt = 15,
  exhausted = 16,
  lost = 17,
  interrupted = 130,
  terminated = 143,  // as interrupted, by SIGTERM
};

[[nodiscard]] ExitCode exit_code(errc code);
[[nodiscard]] ExitCode exit_code(const ClaimOutcome& outcome);
[[nodiscard]] ExitCode exit_code(const CompleteOutcome& outcome);
[[nodiscard]] ExitCode exit_code(const FailOutcome& outcome);
[[nodiscard]] ExitCode exit_code(const RenewOutcome& outcome);
[[nodiscard]] ExitCode exit_code(const ReleaseOutcome& outcome);

}  // namespace idem::cli
