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

// The envelope; without the output if that is over `output_max` bytes.
[[nodiscard]] std::string to_envelope(int status, std::string_view output,
                                      std::uint64_t output_max);
// corrupt: it is not the result of an `idem run`.
[[nodiscard]] result<RunResult> from_envelope(std::string_view envelope);

}  // namespace idem::cli
