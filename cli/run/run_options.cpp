#include "run_options.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <memory>

#include "envelope.hpp"
#include "failure.hpp"

namespace idem::cli {

namespace {

// Of a shorter one no margin is left in which a command could be ended.
constexpr Micros kLeaseMin = std::chrono::milliseconds(100);

}  // namespace

void add_run_options(CLI::App* leaf, RunOptions& options) {
  add_text(leaf, "--key", options.key.key, "names the work: same key, same run")->required();
  add_scope(leaf, options.key);
  leaf->add_option("--request", options.request_file,
                   "what makes two runs the same is this file, not the command line")
      ->type_name("FILE")
      ->check(not_empty());
  add_duration(leaf, "--lease", options.lease,
               "a run that was killed is taken over after this; a live one renews", "10m");
  add_duration(leaf, "--ttl", options.ttl, "how long the result is replayed", "24h");
  add_duration(leaf, "--wait", options.wait, "wait for a run that is under way", "not at all");
  add_count(leaf, "--max-output", options.output_max,
            "bytes of output to keep; a longer one is not replayed, nor run again", "1MiB");
  leaf->add_flag("--retry-failed", options.retry_failed,
                 "a non-zero exit status is not kept: the next run tries again");
}

Fingerprint fingerprint_of(const RunOptions& options, const std::vector<std::string>& command) {
  if (!options.request_file.empty()) return Fingerprint::of_bytes(read_file(options.request_file));
  // Unambiguous: every word is preceded by its length.
  std::string request;
  for (const std::string& word : command) request += fmt::format("{}:{},", word.size(), word);
  return Fingerprint::of_bytes(request);
}

std::uint64_t output_max(const RunOptions& options) {
  return options.output_max.value_or(kResultBytesDefault);
}

Policy policy_of(const RunOptions& options) {
  Policy policy;
  policy.lease = options.lease.value_or(std::chrono::minutes(10));
  policy.stuck_after = std::max(policy.stuck_after, policy.lease);
  policy.result_ttl = options.ttl.value_or(std::chrono::hours(24));
  policy.failed_ttl = policy.result_ttl;
  policy.on_duplicate = OnDuplicate::wait;
  policy.wait = Micros(0);
  // No limit that a store can keep is near the largest number.
  policy.max_result_bytes =
      std::min(output_max(options), kResultBytesDefault << 20) + kEnvelopeLineBytesMax;
  must(check_policy(policy), "--lease, --ttl");
  if (policy.lease < kLeaseMin)
    throw Failure::usage("--lease: 100ms is the least, so that a command can be ended in time");
  return policy;
}

}  // namespace idem::cli
