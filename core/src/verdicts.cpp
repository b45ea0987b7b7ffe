#include "verdicts.hpp"

#include <type_traits>

namespace idem::detail {

std::optional<ExecuteOutcome> without_running(ClaimOutcome&& claimed) {
  return std::visit(
      [](auto&& one) -> std::optional<ExecuteOutcome> {
        if constexpr (std::is_same_v<std::decay_t<decltype(one)>, Claimed>) {
          return std::nullopt;
        } else {
          return ExecuteOutcome(std::forward<decltype(one)>(one));
        }
      },
      std::move(claimed));
}

std::string describe(const std::exception_ptr& thrown) {
  try {
    std::rethrow_exception(thrown);
  } catch (const std::exception& error) {
    return std::string("exception: ") + error.what();
  } catch (...) {
    return "exception: not derived from std::exception";
  }
}

Verdict of_attempt(Verdict verdict, std::uint32_t attempt) {
  if (attempt > 1 && std::holds_alternative<NothingDone>(verdict))
    return Retryable{"this attempt did nothing", {}};
  return verdict;
}

Failing::Failing(Verdict verdict) {
  if (auto* retryable = std::get_if<Retryable>(&verdict)) {
    reason = std::move(retryable->reason);
    retry_after = retryable->retry_after;
  } else {
    kind = FailKind::final;
    reason = std::move(std::get<Final>(verdict).reason);
  }
}

result<ExecuteOutcome> after_complete(result<CompleteOutcome> done, std::string text,
                                      std::uint32_t attempt) {
  if (!done) return std::move(done).error();
  if (const auto* completed = std::get_if<Completed>(&*done)) {
    return ExecuteOutcome(Executed{std::move(text), completed->late, attempt});
  }
  if (auto* lost = std::get_if<Lost>(&*done)) return ExecuteOutcome(std::move(*lost));
  if (auto* conflict = std::get_if<Conflict>(&*done)) {
    return ExecuteOutcome(Lost{std::move(conflict->result)});
  }
  return ExecuteOutcome(Lost{});  // swept, failed or removed by others meanwhile
}

result<ExecuteOutcome> after_release(const result<ReleaseOutcome>& released) {
  if (!released) return released.error();
  if (std::holds_alternative<Released>(*released)) return ExecuteOutcome(Released{});
  return ExecuteOutcome(Lost{});
}

result<ExecuteOutcome> after_fail(result<FailOutcome> failed, const Failing& failing) {
  if (!failed) return std::move(failed).error();
  if (auto* lost = std::get_if<Lost>(&*failed)) return ExecuteOutcome(std::move(*lost));
  if (!std::holds_alternative<FailRecorded>(*failed)) return ExecuteOutcome(Lost{});
  return ExecuteOutcome(ActionFailed{failing.reason, failing.kind});
}

}  // namespace idem::detail
