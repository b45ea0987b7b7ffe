// What the verbs answer: every outcome a correct caller must handle, as variants to be matched
// exhaustively. docs/semantics.md holds the table of state and verb behind each.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <variant>

#include "idem/record.hpp"
#include "idem/time.hpp"

namespace idem {

// What a claim was given for.
enum class ClaimKind : std::uint8_t {
  fresh,     // no record, or an expired one
  retry,     // after a failure that may be retried
  takeover,  // past a lease that is over
  resumed,   // the caller's own claim, asked for again
  bypass,    // policy enabled = false: nothing is stored
};
[[nodiscard]] std::string_view to_string(ClaimKind kind) noexcept;

// The claim is the caller's: run the business, then complete, fail or release.
struct Granted {
  ClaimKind kind = ClaimKind::fresh;
  Token token;
  std::uint64_t version = 0;
  std::uint32_t attempt = 1;
  std::uint64_t previous_fence = 0;  // takeover: the fence that is over; else 0
  Time claimed_at{};                 // store time of this answer
  Time lease_until{};                // store time
  [[nodiscard]] Micros lease_left() const { return lease_until - claimed_at; }
};

// Another attempt holds the lease.
struct InProgress {
  Micros retry_after{};  // in (0, lease]: when the lease ends, unless it is renewed
  std::uint32_t attempt = 1;
};

// The first result, byte for byte.
struct Replay {
  std::string result;
  bool own = false;        // it is the result of this very owner token
  bool retained = true;    // false: too large to keep; `result` is empty, size and digest follow
  std::uint64_t size = 0;  // of the first result
  Fingerprint digest;      // SHA-256 of the first result; only when not retained
};

// Same key, other request. Carries nothing of the first one.
struct Mismatch {};

// Failed, and not to be tried before retry_after.
struct Backoff {
  Micros retry_after{};
};

// Failed, and not to be tried again.
struct Failed {
  std::string reason;
  FailKind kind = FailKind::final;
};

// The lease is over and max_attempts is reached.
struct Exhausted {
  std::uint32_t attempts = 0;
};

// The lease is over and nobody may take over (policy hold).
struct InDoubt {
  std::uint32_t attempt = 0;
  std::uint64_t fence = 0;  // for resolve()
};

// As Replay, where the policy does not return the original result.
struct AlreadyDone {};

// A wait found that a claim may succeed now.
struct Claimable {};

struct Completed {
  bool late = false;     // the lease was over, but nobody had taken over
  bool already = false;  // this result was stored before: a reply was lost
};

// The record belongs to another attempt. Nothing changed.
struct Lost {
  std::optional<std::string> result;  // the stored first result, if there is one: return that
};

// The caller's own attempt already stored another result. The first one stays.
struct Conflict {
  std::string result;
};

// The record is the caller's, but is not processing any more.
struct NotProcessing {
  Status status = Status::failed;
};

// The record is away (expired, swept or released). Nothing was written.
struct Gone {};

struct FailRecorded {
  bool already = false;
};

struct Renewed {
  bool late = false;
  Time lease_until{};
  std::uint64_t version = 0;
  Time now{};
};

// A renewal would go over max_total_lease.
struct RenewRefused {
  Micros lease_left{};
};

struct Released {};

}  // namespace idem
