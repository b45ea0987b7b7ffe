// What `idem run` is asked to do.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "idem/fingerprint.hpp"
#include "idem/policy.hpp"
#include "options.hpp"

namespace idem::cli {

struct RunOptions {
  KeyOptions key;
  std::string request_file;
  std::optional<Duration> lease;
  std::optional<Duration> ttl;
  std::optional<Duration> wait;
  std::optional<std::uint64_t> output_max;
  bool retry_failed = false;
};

// `options` must outlive the parsing.
void add_run_options(CLI::App* leaf, RunOptions& options);

// Of what makes two runs the same: a file, or the command's words.
[[nodiscard]] Fingerprint fingerprint_of(const RunOptions& options,
                                         const std::vector<std::string>& command);

// Bytes of output to keep.
[[nodiscard]] std::uint64_t output_max(const RunOptions& options);

// Throws Failure::usage about what cannot be.
[[nodiscard]] Policy policy_of(const RunOptions& options);

}  // namespace idem::cli
