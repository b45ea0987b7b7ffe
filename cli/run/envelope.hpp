// What `idem run` stores as the result: exit status and standard output of the command, as one
// line of text and then the bytes. An output over the limit is not kept, but the fact is: the
// command is never run again because of its size.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "idem/error.hpp"
#include "idem/fingerprint.hpp"

namespace idem::cli {

struct RunResult {
  int status = 0;
  bool kept = true;
  std::string output;      // kept
  std::uint64_t size = 0;  // of the output
  Fingerprint digest;      // of the output; not kept
};

// More than the line before the output ever takes.
inline constexpr std::uint64_t kEnvelopeLineBytesMax = 256;

// Collects a command's output as it comes: in memory up to `max` bytes, of a longer one only size
// and digest.
class OutputKeeper {
 public:
  explicit OutputKeeper(std::uint64_t max) : max_(max) {}
  void add(std::string_view piece);
  // What came in all, of a command that ended so. To be called once.
  [[nodiscard]] RunResult end(int status);

 private:
  const std::uint64_t max_;
  RunResult run_;
  FingerprintStream digest_;  // not kept
};

[[nodiscard]] std::string to_envelope(const RunResult& run);
// corrupt: it is not the result of an `idem run`.
[[nodiscard]] result<RunResult> from_envelope(std::string_view envelope);

}  // namespace idem::cli
