// GoogleMock matchers on what the verbs answer:
//
//   EXPECT_THAT(service.claim(request), IsClaimed());
//   EXPECT_THAT(service.claim(request), IsClaimed(AllOf(Kind(ClaimKind::takeover), AttemptIs(2))));
//   EXPECT_THAT(service.claim(request), ReplayOf("paid"));
//   EXPECT_THAT(service.complete(lease, "late"), IsLost());
//
// Tests that do not live in namespace idem may name them as the outcomes are named:
//
//   using namespace idem::matchers;
//   EXPECT_THAT(service.claim(request), Claimed());     also InProgress(), Mismatch(), Completed()
//
// They take result<ClaimOutcome>, result<WaitOutcome> ... and the bare variants. A failure names
// the outcome, attempt, lease left and stored result (describe.hpp).
#pragma once

#include <gmock/gmock.h>

#include <string>
#include <type_traits>
#include <utility>
#include <variant>

#include "idem/testing/describe.hpp"

namespace idem::testing {

// Matches any answer that holds an Alternative which in turn matches `inner`.
template <class Alternative>
class HoldsMatcher {
 public:
  HoldsMatcher(std::string words, ::testing::Matcher<const Alternative&> inner)
      : words_(std::move(words)), inner_(std::move(inner)) {}

  template <class Outcome>
  bool MatchAndExplain(const result<Outcome>& answer,
                       ::testing::MatchResultListener* listener) const {
    return answer.has_value() && MatchAndExplain(*answer, listener);
  }

  template <class... Alternatives>
  bool MatchAndExplain(const std::variant<Alternatives...>& answer,
                       ::testing::MatchResultListener* listener) const {
    static_assert((std::is_same_v<Alternative, Alternatives> || ...),
                  "this verb never answers that");
    const auto* held = std::get_if<Alternative>(&answer);
    return held != nullptr && inner_.MatchAndExplain(*held, listener);
  }

  void DescribeTo(std::ostream* out) const {
    *out << words_ << " that ";
    inner_.DescribeTo(out);
  }
  void DescribeNegationTo(std::ostream* out) const {
    *out << "not " << words_ << " that ";
    inner_.DescribeTo(out);
  }

 private:
  std::string words_;
  ::testing::Matcher<const Alternative&> inner_;
};

template <class Alternative>
[[nodiscard]] auto holds(std::string words,
                         ::testing::Matcher<const Alternative&> inner = ::testing::_) {
  return ::testing::MakePolymorphicMatcher(
      HoldsMatcher<Alternative>(std::move(words), std::move(inner)));
}

using Text = ::testing::Matcher<const std::string&>;

// --- sub-matchers ----------------------------------------------------------------------------

MATCHER_P(Kind, kind, "is of kind " + std::string(to_string(kind))) {
  return arg.lease.kind() == kind;
}
MATCHER_P(FenceIs, inner, "has a fence that " + ::testing::DescribeMatcher<std::uint64_t>(inner)) {
  return ::testing::ExplainMatchResult(inner, arg.lease.fence(), result_listener);
}
MATCHER_P(PreviousFence, fence, "tells of previous fence " + std::to_string(fence)) {
  return arg.lease.previous_fence() == fence;
}
MATCHER_P(LeaseLeft, left, "has " + length(left) + " of its lease left") {
  return arg.lease.lease_left() == Micros(left);
}
MATCHER_P(AttemptIs, attempt, "is attempt " + std::to_string(attempt)) {
  if constexpr (requires { arg.lease; }) {
    return arg.lease.attempt() == static_cast<std::uint32_t>(attempt);
  } else {
    return arg.attempt == static_cast<std::uint32_t>(attempt);
  }
}
MATCHER_P(RetryAfter, d, "says to retry after " + length(d)) {
  return arg.retry_after == Micros(d);
}
MATCHER(Own, "is of the caller's own token") { return arg.own; }
MATCHER(NotRetained, "was too large to keep") { return !arg.retained; }
MATCHER(Late, "was late") { return arg.late; }
MATCHER(Already, "was there already") { return arg.already; }

// --- claim, wait -----------------------------------------------------------------------------

[[nodiscard]] inline auto IsClaimed(::testing::Matcher<const Claimed&> inner = ::testing::_) {
  return holds<Claimed>("a claim", std::move(inner));
}
[[nodiscard]] inline auto IsInProgress(::testing::Matcher<const InProgress&> inner = ::testing::_) {
  return holds<InProgress>("in progress", std::move(inner));
}
[[nodiscard]] inline auto IsReplay(::testing::Matcher<const Replay&> inner = ::testing::_) {
  return holds<Replay>("a replay", std::move(inner));
}
[[nodiscard]] inline auto ReplayOf(const Text& bytes) {
  return IsReplay(::testing::Field("result", &Replay::result, bytes));
}
[[nodiscard]] inline auto IsMismatch() { return holds<Mismatch>("a mismatch"); }
[[nodiscard]] inline auto IsBackoff(::testing::Matcher<const Backoff&> inner = ::testing::_) {
  return holds<Backoff>("backoff", std::move(inner));
}
[[nodiscard]] inline auto FailedWith(const Text& reason) {
  return holds<Failed>("failed", ::testing::Field("reason", &Failed::reason, reason));
}
[[nodiscard]] inline auto IsExhausted() { return holds<Exhausted>("exhausted"); }
[[nodiscard]] inline auto IsInDoubt(::testing::Matcher<const InDoubt&> inner = ::testing::_) {
  return holds<InDoubt>("in doubt", std::move(inner));
}
[[nodiscard]] inline auto IsAlreadyDone() { return holds<AlreadyDone>("already done"); }
[[nodiscard]] inline auto IsClaimable() { return holds<Claimable>("claimable"); }

// --- complete, fail, renew, release ----------------------------------------------------------

[[nodiscard]] inline auto IsCompleted(::testing::Matcher<const Completed&> inner = ::testing::_) {
  return holds<Completed>("completed", std::move(inner));
}
[[nodiscard]] inline auto IsLost() { return holds<Lost>("lost"); }
// Lost, with the first result of whoever won.
[[nodiscard]] inline auto LostTo(const Text& result) {
  return holds<Lost>("lost",
                     ::testing::Field("result", &Lost::result, ::testing::Optional(result)));
}
[[nodiscard]] inline auto ConflictWith(const Text& result) {
  return holds<Conflict>("a conflict", ::testing::Field("result", &Conflict::result, result));
}
[[nodiscard]] inline auto IsNotProcessing() { return holds<NotProcessing>("not processing"); }
[[nodiscard]] inline auto IsGone() { return holds<Gone>("gone"); }
[[nodiscard]] inline auto IsFailRecorded(
    ::testing::Matcher<const FailRecorded&> inner = ::testing::_) {
  return holds<FailRecorded>("a recorded failure", std::move(inner));
}
[[nodiscard]] inline auto IsRenewed(::testing::Matcher<const Renewed&> inner = ::testing::_) {
  return holds<Renewed>("renewed", std::move(inner));
}
[[nodiscard]] inline auto IsRenewRefused() { return holds<RenewRefused>("a refused renewal"); }
[[nodiscard]] inline auto IsReleased() { return holds<Released>("released"); }

// --- execute ---------------------------------------------------------------------------------

[[nodiscard]] inline auto IsExecuted(::testing::Matcher<const Executed&> inner = ::testing::_) {
  return holds<Executed>("executed", std::move(inner));
}
[[nodiscard]] inline auto ExecutedWith(const Text& result) {
  return IsExecuted(::testing::Field("result", &Executed::result, result));
}
[[nodiscard]] inline auto IsActionFailed(
    ::testing::Matcher<const ActionFailed&> inner = ::testing::_) {
  return holds<ActionFailed>("a failed action", std::move(inner));
}

// --- errors, get -----------------------------------------------------------------------------

MATCHER_P(HasError, code, "is the error " + std::string(to_string(code))) {
  return arg.has_error() && arg.error().code == code;
}
MATCHER(IsDone, "is done") { return arg.has_value(); }
MATCHER(IsAbsent, "is absent") { return arg.has_value() && !arg->has_value(); }
MATCHER_P(IsFound, status, "is a record in status " + std::string(to_string(status))) {
  return arg.has_value() && arg->has_value() && (*arg)->record.status == status;
}
MATCHER_P2(SweptOf, abandoned, expired,
           "abandoned " + std::to_string(abandoned) + " and removed " + std::to_string(expired)) {
  return arg.has_value() && arg->abandoned == static_cast<std::uint64_t>(abandoned) &&
         arg->expired == static_cast<std::uint64_t>(expired);
}

}  // namespace idem::testing

// Apart from idem::testing: where `idem::Claimed` is in scope as a type, its name cannot be both.
namespace idem::matchers {

using testing::ExecutedWith;
using testing::ReplayOf;

[[nodiscard]] inline auto Claimed(::testing::Matcher<const idem::Claimed&> inner = ::testing::_) {
  return testing::IsClaimed(std::move(inner));
}
[[nodiscard]] inline auto InProgress(
    ::testing::Matcher<const idem::InProgress&> inner = ::testing::_) {
  return testing::IsInProgress(std::move(inner));
}
[[nodiscard]] inline auto Mismatch() { return testing::IsMismatch(); }
[[nodiscard]] inline auto Completed(
    ::testing::Matcher<const idem::Completed&> inner = ::testing::_) {
  return testing::IsCompleted(std::move(inner));
}

}  // namespace idem::matchers
