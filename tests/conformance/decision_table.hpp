// The decision table: what every verb answers in every state, written by hand from
// docs/semantics.md and from nothing else.
//
// A cell is "answer>after". Answers: the outcome's word and, where it counts, its detail
// ("takeover:3" is a claim by takeover as attempt 3). After: the state the verb leaves, or "=": the
// record is untouched to the last byte.
//
// States
//   A   removed            SW  expired, then swept       PL  lease live
//   PX  lease over         PS  over for stuck_after      D   PX, claimed under `hold`
//   DS  PS, under `hold`   S   success                   FR  failed, may be retried
//   FB  failed, backoff    FF  failed, final             AB  failed, abandoned by the sweep
//   XS, XF, XP             success, failure and claim past their expiry, still in the store
//   N   only as after-state: the store holds nothing
//
// Every scene has a history: another incarnation of the key was removed before, and the attempt at
// hand is the second one, a takeover from a first that went silent.
#pragma once

#include <array>
#include <cstddef>
#include <string_view>

namespace idem::conformance::table {

template <std::size_t Columns>
struct Row {
  std::string_view states;  // separated by blanks: all of them answer alike
  std::array<std::string_view, Columns> cells;
};

inline constexpr std::string_view kStates[] = {"A",  "SW", "PL", "PX", "PS", "D",  "DS", "S",
                                               "FR", "FB", "FF", "AB", "XS", "XF", "XP"};

// claim, same hash: by the attempt's own token | by any other. Any other hash, whoever asks.
using ClaimRow = Row<3>;
// Policy: takeover, retries, no cap.
inline constexpr ClaimRow kClaim[] = {
    {"A SW XS XF XP", {"fresh:1>PL", "fresh:1>PL", "fresh:1>PL"}},
    {"PL", {"resumed:2>PL", "in_progress:2>=", "mismatch>="}},
    {"PX PS D DS", {"takeover:2>PL", "takeover:3>PL", "mismatch>="}},
    {"S", {"replay:own>=", "replay>=", "mismatch>="}},
    {"FR AB", {"retry:3>PL", "retry:3>PL", "mismatch>="}},
    {"FB", {"backoff>=", "backoff>=", "mismatch>="}},
    {"FF", {"failed>=", "failed>=", "mismatch>="}},
};
inline constexpr ClaimRow kClaimHold[] = {
    {"A SW XS XF XP", {"fresh:1>PL", "fresh:1>PL", "fresh:1>PL"}},
    {"PL", {"resumed:2>PL", "in_progress:2>=", "mismatch>="}},
    {"PX PS D DS", {"takeover:2>PL", "in_doubt:2>=", "mismatch>="}},
    {"S", {"replay:own>=", "replay>=", "mismatch>="}},
    {"FR AB", {"retry:3>PL", "retry:3>PL", "mismatch>="}},
    {"FB", {"backoff>=", "backoff>=", "mismatch>="}},
    {"FF", {"failed>=", "failed>=", "mismatch>="}},
};
// retry_failed = false treats FR, with or without backoff, as FF.
inline constexpr ClaimRow kClaimNoRetry[] = {
    {"A SW XS XF XP", {"fresh:1>PL", "fresh:1>PL", "fresh:1>PL"}},
    {"PL", {"resumed:2>PL", "in_progress:2>=", "mismatch>="}},
    {"PX PS D DS", {"takeover:2>PL", "takeover:3>PL", "mismatch>="}},
    {"S", {"replay:own>=", "replay>=", "mismatch>="}},
    {"FR FB FF AB", {"failed>=", "failed>=", "mismatch>="}},
};
// max_attempts = 2: the attempt at hand is the last.
inline constexpr ClaimRow kClaimCapped[] = {
    {"A SW XS XF XP", {"fresh:1>PL", "fresh:1>PL", "fresh:1>PL"}},
    {"PL", {"resumed:2>PL", "in_progress:2>=", "mismatch>="}},
    {"PX PS D DS", {"takeover:2>PL", "exhausted:2>=", "mismatch>="}},
    {"S", {"replay:own>=", "replay>=", "mismatch>="}},
    {"FR FF AB", {"failed>=", "failed>=", "mismatch>="}},
    {"FB", {"backoff>=", "backoff>=", "mismatch>="}},
};
// return_original_result = false.
inline constexpr ClaimRow kClaimTerse[] = {
    {"A SW XS XF XP", {"fresh:1>PL", "fresh:1>PL", "fresh:1>PL"}},
    {"PL", {"resumed:2>PL", "in_progress:2>=", "mismatch>="}},
    {"PX PS D DS", {"takeover:2>PL", "takeover:3>PL", "mismatch>="}},
    {"S", {"already_done>=", "already_done>=", "mismatch>="}},
    {"FR AB", {"retry:3>PL", "retry:3>PL", "mismatch>="}},
    {"FB", {"backoff>=", "backoff>=", "mismatch>="}},
    {"FF", {"failed>=", "failed>=", "mismatch>="}},
};
// enabled = false.
inline constexpr ClaimRow kClaimDisabled[] = {
    {"A SW PL PX PS D DS S FR FB FF AB XS XF XP", {"bypass:1>=", "bypass:1>=", "bypass:1>="}},
};

// wait, with nothing left to wait: takeover | hold | no retry | capped | terse | other hash.
using WaitRow = Row<6>;
inline constexpr WaitRow kWait[] = {
    {"A SW XS XF XP",
     {"claimable>=", "claimable>=", "claimable>=", "claimable>=", "claimable>=", "claimable>="}},
    {"PL",
     {"in_progress:2>=", "in_progress:2>=", "in_progress:2>=", "in_progress:2>=", "in_progress:2>=",
      "mismatch>="}},
    {"PX PS D DS",
     {"claimable>=", "in_doubt:2>=", "claimable>=", "exhausted:2>=", "claimable>=", "mismatch>="}},
    {"S", {"replay>=", "replay>=", "replay>=", "replay>=", "already_done>=", "mismatch>="}},
    {"FR AB", {"claimable>=", "claimable>=", "failed>=", "failed>=", "claimable>=", "mismatch>="}},
    {"FB", {"backoff>=", "backoff>=", "failed>=", "backoff>=", "backoff>=", "mismatch>="}},
    {"FF", {"failed>=", "failed>=", "failed>=", "failed>=", "failed>=", "mismatch>="}},
};

// complete: own token, the first result | own token, another result | not the own token.
using CompleteRow = Row<3>;
inline constexpr CompleteRow kComplete[] = {
    {"A SW XS XF XP", {"gone>=", "gone>=", "gone>="}},
    {"PL", {"completed>S", "completed>S", "lost>="}},
    {"PX PS D DS AB", {"completed:late>S", "completed:late>S", "lost>="}},
    {"S", {"completed:already>=", "conflict:first>=", "lost:first>="}},
    {"FR FB FF", {"not_processing>=", "not_processing>=", "lost>="}},
};

// fail: own token, retryable | retryable after a while | final | not the own token.
using FailRow = Row<4>;
inline constexpr FailRow kFail[] = {
    {"A SW XS XF XP", {"gone>=", "gone>=", "gone>=", "gone>="}},
    {"PL PX PS D DS", {"fail_recorded>FR", "fail_recorded>FB", "fail_recorded>FF", "lost>="}},
    {"S", {"not_processing>=", "not_processing>=", "not_processing>=", "lost:first>="}},
    {"FR FB FF AB",
     {"fail_recorded:already>=", "fail_recorded:already>=", "fail_recorded:already>=", "lost>="}},
};

// renew: own token | not the own token.
using RenewRow = Row<2>;
inline constexpr RenewRow kRenew[] = {
    {"A SW XS XF XP", {"gone>=", "gone>="}},         {"PL", {"renewed>PL", "lost>="}},
    {"PX PS D DS", {"renewed:late>PL", "lost>="}},   {"S", {"not_processing>=", "lost:first>="}},
    {"FR FB FF AB", {"not_processing>=", "lost>="}},
};

// release: own token | not the own token.
using ReleaseRow = Row<2>;
inline constexpr ReleaseRow kRelease[] = {
    {"A SW XS XF XP", {"released>=", "released>="}},
    {"PL PX PS D DS", {"released>N", "lost>="}},
    {"S", {"not_processing>=", "lost:first>="}},
    {"FR FB FF AB", {"not_processing>=", "lost>="}},
};

// get | sweep, until there is nothing more to do.
using LookRow = Row<2>;
inline constexpr LookRow kLook[] = {
    {"A SW", {"absent>=", "swept>="}},
    {"XS XF XP", {"absent>=", "swept>N"}},
    {"PL PX D DS", {"processing>=", "swept>="}},
    {"PS", {"processing>=", "swept>AB"}},
    {"S", {"success>=", "swept>="}},
    {"FR FB FF AB", {"failed>=", "swept>="}},
};

// With the fence that stands there: force_release | force_fail | resolve as success | resolve as
// retryable. With any other fence: all of them.
using AdminRow = Row<5>;
inline constexpr AdminRow kAdmin[] = {
    {"PL PX PS D DS", {"done>N", "done>FF", "done>S", "done>FR", "stale_fence>="}},
    {"A SW S FR FB FF AB XS XF XP",
     {"stale_fence>=", "stale_fence>=", "stale_fence>=", "stale_fence>=", "stale_fence>="}},
};

}  // namespace idem::conformance::table
