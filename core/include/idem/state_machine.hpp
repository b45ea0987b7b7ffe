// The state machine: (record?, command, now) -> what to write, and what to answer.
//
// Pure and total: no I/O, no lock, no clock. All of SEMANTICS §§2-6 that concerns one record is
// here and nowhere else. The caller (the driver) performs the write; if the store finds another
// record than the one decided upon, it asks again with that record, until a decision needs no write
// or the write took.
#pragma once

#include <optional>
#include <variant>

#include "idem/outcome.hpp"
#include "idem/policy.hpp"
#include "idem/store.hpp"

namespace idem {

// The logical states of SEMANTICS §2.
enum class LogicalState : std::uint8_t {
  absent,             // A   no record, or expired
  processing_live,    // PL
  processing_lapsed,  // PX  (D under policy hold)
  success,            // S
  failed_retryable,   // FR
  failed_backoff,     // FB
  failed_final,       // FF
};
[[nodiscard]] LogicalState logical_state(const Record* held, Time now) noexcept;
// Whether a processing record was claimed under policy `hold`: the record itself shows it (its
// expiry lies kDurationMax beyond its lease), and no sweep touches it. What a claim of it answers
// once its lease is over is up to the policy of that claim.
[[nodiscard]] bool claimed_under_hold(const Record& held) noexcept;
[[nodiscard]] std::string_view to_string(LogicalState state) noexcept;

namespace command {

struct Claim {
  Fingerprint request_hash;
  Owner owner;
  Policy policy;
};

// As Claim, but only looks: what wait() asks of every record it reads.
struct Peek {
  Fingerprint request_hash;
  Policy policy;
};

struct Complete {
  Token token;
  std::string_view result;
  Duration ttl;
  bool tombstone = false;  // `result` is what tombstone_of() made
};

struct Fail {
  Token token;
  FailKind kind = FailKind::retryable;  // retryable or final
  std::string_view reason;
  Duration retry_after;
  Duration ttl;
};

struct Renew {
  Token token;
  Duration lease;
  Policy policy;
};

struct Release {
  Token token;
};

// The sweep's view of a record whose attempt never reported.
struct Abandon {
  Duration stuck_after;
  Duration ttl;
};

// Administration: names the fence it saw. Only a processing record is changed.
struct ForceRelease {
  std::uint64_t fence = 0;
};
struct ForceFail {
  std::uint64_t fence = 0;
  FailKind kind = FailKind::final;
  std::string_view reason;
  Duration ttl;
};
struct ForceComplete {
  std::uint64_t fence = 0;
  std::string_view result;
  Duration ttl;
};

}  // namespace command

using Command = std::variant<command::Claim, command::Peek, command::Complete, command::Fail,
                             command::Renew, command::Release, command::Abandon,
                             command::ForceRelease, command::ForceFail, command::ForceComplete>;

// An administrator's fence is not the record's any more.
struct StaleFence {
  std::uint64_t fence = 0;  // of the record that stands there; 0: none
};

// The sweep left this record alone.
struct LeftAlone {};

using Outcome =
    std::variant<Granted, InProgress, Replay, Mismatch, Backoff, Failed, Exhausted, InDoubt,
                 AlreadyDone, Claimable, Completed, Lost, Conflict, NotProcessing, Gone,
                 FailRecorded, Renewed, RenewRefused, Released, StaleFence, LeftAlone>;

struct WriteNothing {};
struct WriteInsert {
  Draft draft;
};
struct WriteReplace {
  std::uint64_t expected = 0;
  Draft draft;
};
struct WriteRemove {
  std::uint64_t expected = 0;
};
using Write = std::variant<WriteNothing, WriteInsert, WriteReplace, WriteRemove>;

// `outcome` is the answer if `write` is WriteNothing or takes. Where it depends on what the store
// wrote (version, fence, times, lateness), settle() fills it in from the answer.
struct Decision {
  Outcome outcome;
  Write write;
};

// `held`: what the store was seen to hold at `now`, or nullptr for nothing.
[[nodiscard]] Decision step(const Record* held, const Command& command, Time now);

// Completes a decision whose write took. `before`: the record decided upon (may be a lease's own
// knowledge of it); `written`: what the store now holds, at its time `now`.
[[nodiscard]] Outcome settle(Outcome outcome, const Record* before, const Record& written,
                             Time now);

// What is stored instead of a result that is too large to keep, and the way back.
[[nodiscard]] std::string tombstone_of(std::string_view result);
[[nodiscard]] Replay replay_of_tombstone(std::string_view stored);

}  // namespace idem
