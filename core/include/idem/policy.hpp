// Policies: the durations and choices of the state machine, per service, per biz_type and per call.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>

#include "idem/error.hpp"
#include "idem/time.hpp"

namespace idem {

// What a claim does with an attempt whose lease is over and that never reported.
enum class OnLapsed : std::uint8_t {
  takeover,  // run again, with a new fence
  hold,      // InDoubt, until a person or resolve() decides
};

// What happens to a result over max_result_bytes.
enum class Oversize : std::uint8_t {
  refuse,     // too_large; the record stays processing
  tombstone,  // digest and size are stored; later claims get Replay with retained = false
};

enum class OnDuplicate : std::uint8_t {
  reject,  // InProgress at once
  wait,    // wait for the first result, up to Policy::wait
};

inline constexpr std::uint64_t kResultBytesDefault = std::uint64_t{1} << 20;

// Every duration is > 0 and <= kDurationMax; wait may be 0.
struct Policy {
  bool enabled = true;  // false: every claim is a bypass, nothing is stored
  Duration lease = std::chrono::seconds(30);
  Duration stuck_after = std::chrono::seconds(600);  // >= lease
  Duration result_ttl = std::chrono::hours(24);      // >= lease
  Duration failed_ttl = std::chrono::hours(24);
  OnLapsed on_lapsed = OnLapsed::takeover;
  bool retry_failed = true;
  std::optional<std::uint32_t> max_attempts;  // none: no cap
  std::optional<Duration> max_total_lease;    // from the claim on; none: no cap
  bool return_original_result = true;         // false: AlreadyDone instead of Replay
  OnDuplicate on_duplicate = OnDuplicate::reject;
  Duration wait = std::chrono::seconds(30);
  std::uint64_t max_result_bytes = kResultBytesDefault;
  Oversize oversize = Oversize::refuse;
};

// Replaces what it names.
struct PolicyPatch {
  std::optional<bool> enabled;
  std::optional<Duration> lease;
  std::optional<Duration> stuck_after;
  std::optional<Duration> result_ttl;
  std::optional<Duration> failed_ttl;
  std::optional<OnLapsed> on_lapsed;
  std::optional<bool> retry_failed;
  std::optional<std::uint32_t> max_attempts;
  std::optional<Duration> max_total_lease;
  std::optional<bool> return_original_result;
  std::optional<OnDuplicate> on_duplicate;
  std::optional<Duration> wait;
  std::optional<std::uint64_t> max_result_bytes;
  std::optional<Oversize> oversize;

  [[nodiscard]] Policy apply_to(Policy base) const;
};

// Ranges and the two relations stuck_after >= lease, result_ttl >= lease; the message names the
// field. Checked for a service's and a biz_type's policy.
[[nodiscard]] result<void> check_policy(const Policy& policy);

// The same ranges for one call. A call that asks for a longer lease than the policy's stuck_after
// gets stuck_after = lease: a single call need not repeat both.
[[nodiscard]] result<Policy> policy_for_call(const Policy& base, const PolicyPatch& patch);

}  // namespace idem
