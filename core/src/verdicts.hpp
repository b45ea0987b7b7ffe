// What execute() answers, from what its claim and its report answered. Shared by the blocking and
// the asynchronous form; nothing here asks a store.
#pragma once

#include <exception>
#include <optional>
#include <string>
#include <utility>

#include "idem/service.hpp"

namespace idem::detail {

// Everything a claim may answer but Claimed is an answer of execute, too. nullopt: Claimed.
[[nodiscard]] std::optional<ExecuteOutcome> without_running(ClaimOutcome&& claimed);

// "exception: <what>", for the record of an attempt that threw.
[[nodiscard]] std::string describe(const std::exception_ptr& thrown);

// What a verdict comes to for that attempt: NothingDone of a later one is Retryable.
[[nodiscard]] Verdict of_attempt(Verdict verdict, std::uint32_t attempt);

// A verdict that is Retryable or Final, as fail() takes it.
struct Failing {
  explicit Failing(Verdict verdict);
  FailKind kind = FailKind::retryable;
  std::string reason;
  Duration retry_after;
};

[[nodiscard]] result<ExecuteOutcome> after_complete(result<CompleteOutcome> done, std::string text,
                                                    std::uint32_t attempt);
[[nodiscard]] result<ExecuteOutcome> after_release(const result<ReleaseOutcome>& released);
[[nodiscard]] result<ExecuteOutcome> after_fail(result<FailOutcome> failed, const Failing& failing);

}  // namespace idem::detail
