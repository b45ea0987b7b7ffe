#include "idem/state_machine.hpp"

#include <algorithm>
#include <charconv>

namespace idem {

std::string_view to_string(ClaimKind kind) noexcept {
  switch (kind) {
    case ClaimKind::fresh:
      return "fresh";
    case ClaimKind::retry:
      return "retry";
    case ClaimKind::takeover:
      return "takeover";
    case ClaimKind::resumed:
      return "resumed";
    case ClaimKind::bypass:
      return "bypass";
  }
  return "?";
}

std::string_view to_string(LogicalState state) noexcept {
  switch (state) {
    case LogicalState::absent:
      return "A";
    case LogicalState::processing_live:
      return "PL";
    case LogicalState::processing_lapsed:
      return "PX";
    case LogicalState::success:
      return "S";
    case LogicalState::failed_retryable:
      return "FR";
    case LogicalState::failed_backoff:
      return "FB";
    case LogicalState::failed_final:
      return "FF";
  }
  return "?";
}

bool claimed_under_hold(const Record& held) noexcept {
  return held.status == Status::processing && held.expires_at - held.lease_until >= kDurationMax;
}

LogicalState logical_state(const Record* held, Time now) noexcept {
  if (held == nullptr || held->expired(now)) return LogicalState::absent;
  switch (held->status) {
    case Status::processing:
      return now < held->lease_until ? LogicalState::processing_live
                                     : LogicalState::processing_lapsed;
    case Status::success:
      return LogicalState::success;
    case Status::failed:
      break;
  }
  if (held->fail_kind == FailKind::final) return LogicalState::failed_final;
  return now < held->retry_at ? LogicalState::failed_backoff : LogicalState::failed_retryable;
}

namespace {

// What one step looks at. `held` is only read in states other than absent.
struct Seen {
  const Record* held;
  Time now;
  LogicalState state;

  [[nodiscard]] const Record& record() const { return *held; }
  [[nodiscard]] bool absent() const { return state == LogicalState::absent; }
  [[nodiscard]] bool processing() const {
    return state == LogicalState::processing_live || state == LogicalState::processing_lapsed;
  }
  [[nodiscard]] bool owned_by(const Token& token) const {
    return record().owner == token.owner && record().fence == token.fence;
  }
};

Decision only(Outcome outcome) { return {std::move(outcome), WriteNothing{}}; }

// While processing a record outlives its lease: a late owner can still complete, attempts stay
// counted. Under `hold` it never goes by itself.
Micros keep_while_processing(Micros lease, const Policy& policy) {
  if (policy.on_lapsed == OnLapsed::hold) return lease + kDurationMax;
  return lease + std::max(policy.stuck_after.micros(), policy.result_ttl.micros());
}

// As above for an attempt that goes on: never less than before, and `hold` stays `hold` even if the
// call that prolongs it has another policy.
Micros keep_while_continued(const Record& held, Time now, Micros lease, const Policy& policy) {
  if (claimed_under_hold(held)) return lease + kDurationMax;
  return std::max(keep_while_processing(lease, policy), held.expires_at - now);
}

// The held record as a draft of the same incarnation and attempt.
Draft continued(const Record& held) {
  Draft draft;
  draft.request_hash = held.request_hash;
  draft.owner = held.owner;
  draft.fence = held.fence;
  draft.attempt = held.attempt;
  draft.fresh = false;
  return draft;
}

Replay replay_of(const Record& held, bool own) {
  if (held.tombstone) {
    Replay replay = replay_of_tombstone(held.result);
    replay.own = own;
    return replay;
  }
  return Replay{.result = held.result,
                .own = own,
                .retained = true,
                .size = held.result.size(),
                .digest = {}};
}

// --- claim -----------------------------------------------------------------------------------

Decision grant(const Seen& seen, const command::Claim& claim, ClaimKind kind,
               std::uint32_t attempt) {
  Draft draft;
  draft.request_hash = claim.request_hash;
  draft.owner = claim.owner;
  draft.attempt = attempt;
  draft.fresh = kind == ClaimKind::fresh;
  draft.lease = claim.policy.lease;
  draft.keep = keep_while_processing(claim.policy.lease, claim.policy);
  Granted granted;
  granted.kind = kind;
  if (kind == ClaimKind::takeover) granted.previous_fence = seen.record().fence;
  if (kind == ClaimKind::resumed) draft.fence = seen.record().fence;
  // An expired record still stands in the store: it is replaced, not inserted over.
  if (seen.held == nullptr) return {granted, WriteInsert{draft}};
  return {granted, WriteReplace{seen.record().version, draft}};
}

// The largest number stays: one that began anew would forget the attempts before.
std::uint32_t next_attempt(const Record& held) { return std::max(held.attempt, held.attempt + 1); }

bool at_cap(const Record& held, const Policy& policy) {
  return policy.max_attempts && held.attempt >= *policy.max_attempts;
}

Decision claim_lapsed(const Seen& seen, const command::Claim& claim) {
  const Record& held = seen.record();
  if (held.owner == claim.owner) return grant(seen, claim, ClaimKind::takeover, held.attempt);
  if (claim.policy.on_lapsed == OnLapsed::hold) return only(InDoubt{held.attempt, held.fence});
  if (at_cap(held, claim.policy)) return only(Exhausted{held.attempt});
  return grant(seen, claim, ClaimKind::takeover, next_attempt(held));
}

Decision claim_live(const Seen& seen, const command::Claim& claim) {
  const Record& held = seen.record();
  if (held.owner != claim.owner) {
    return only(InProgress{held.lease_until - seen.now, held.attempt});
  }
  Decision decision = grant(seen, claim, ClaimKind::resumed, held.attempt);
  Draft& draft = std::get<WriteReplace>(decision.write).draft;
  draft.lease = std::max(draft.lease, held.lease_until - seen.now);
  draft.keep = keep_while_continued(held, seen.now, draft.lease, claim.policy);
  return decision;
}

// What a claim and a wait answer alike: nullopt where a claim would write, or resume.
std::optional<Outcome> standing_answer(const Seen& seen, const Fingerprint& hash,
                                       const Policy& policy, bool own) {
  if (seen.absent()) return std::nullopt;
  const Record& held = seen.record();
  if (held.request_hash != hash) return Mismatch{};
  switch (seen.state) {
    case LogicalState::success:
      if (!policy.return_original_result) return AlreadyDone{};
      return replay_of(held, own);
    case LogicalState::failed_final:
      return Failed{held.result, held.fail_kind};
    case LogicalState::failed_backoff:
    case LogicalState::failed_retryable:
      // Without retries a failure is final; saying "later" would be a lie.
      if (!policy.retry_failed) return Failed{held.result, held.fail_kind};
      if (seen.state == LogicalState::failed_backoff) return Backoff{held.retry_at - seen.now};
      if (at_cap(held, policy)) return Failed{held.result, held.fail_kind};
      return std::nullopt;
    case LogicalState::absent:
    case LogicalState::processing_live:
    case LogicalState::processing_lapsed:
      break;
  }
  return std::nullopt;
}

Decision decide(const Seen& seen, const command::Claim& claim) {
  if (seen.absent()) return grant(seen, claim, ClaimKind::fresh, 1);
  const bool own = seen.record().owner == claim.owner;
  if (auto answer = standing_answer(seen, claim.request_hash, claim.policy, own)) {
    return only(std::move(*answer));
  }
  switch (seen.state) {
    case LogicalState::processing_live:
      return claim_live(seen, claim);
    case LogicalState::processing_lapsed:
      return claim_lapsed(seen, claim);
    default:
      return grant(seen, claim, ClaimKind::retry, next_attempt(seen.record()));
  }
}

Decision decide(const Seen& seen, const command::Peek& peek) {
  if (auto answer = standing_answer(seen, peek.request_hash, peek.policy, false)) {
    return only(std::move(*answer));
  }
  if (seen.state == LogicalState::processing_live) {
    return only(InProgress{seen.record().lease_until - seen.now, seen.record().attempt});
  }
  if (seen.state == LogicalState::processing_lapsed) {
    if (peek.policy.on_lapsed == OnLapsed::hold) {
      return only(InDoubt{seen.record().attempt, seen.record().fence});
    }
    if (at_cap(seen.record(), peek.policy)) return only(Exhausted{seen.record().attempt});
  }
  return only(Claimable{});
}

// --- the owner's verbs -----------------------------------------------------------------------

Lost lost_to(const Record& held) {
  if (held.status != Status::success || held.tombstone) return Lost{};
  return Lost{held.result};
}

Decision store_success(const Record& held, std::string_view result, bool tombstone, Duration ttl,
                       Completed completed) {
  Draft draft = continued(held);
  draft.status = Status::success;
  draft.result = result;
  draft.tombstone = tombstone;
  draft.keep = ttl;
  return {completed, WriteReplace{held.version, draft}};
}

Decision decide(const Seen& seen, const command::Complete& complete) {
  if (seen.absent()) return only(Gone{});
  const Record& held = seen.record();
  if (!seen.owned_by(complete.token)) return only(lost_to(held));
  if (held.status == Status::success) {
    if (held.result == complete.result && held.tombstone == complete.tombstone) {
      return only(Completed{.late = false, .already = true});
    }
    return only(Conflict{held.tombstone ? std::string() : held.result});
  }
  const bool abandoned = held.status == Status::failed && held.fail_kind == FailKind::abandoned;
  if (!seen.processing() && !abandoned) return only(NotProcessing{held.status});
  const bool late = seen.state != LogicalState::processing_live;
  return store_success(held, complete.result, complete.tombstone, complete.ttl,
                       Completed{.late = late, .already = false});
}

Draft failed_draft(const Record& held, FailKind kind, std::string_view reason, Micros retry_after,
                   Micros ttl) {
  Draft draft = continued(held);
  draft.status = Status::failed;
  draft.fail_kind = kind;
  draft.result = reason;
  draft.retry_after = retry_after;
  draft.keep = ttl;
  return draft;
}

Decision decide(const Seen& seen, const command::Fail& fail) {
  if (seen.absent()) return only(Gone{});
  const Record& held = seen.record();
  if (!seen.owned_by(fail.token)) return only(lost_to(held));
  if (held.status == Status::success) return only(NotProcessing{held.status});
  if (held.status == Status::failed) return only(FailRecorded{.already = true});
  return {FailRecorded{}, WriteReplace{held.version, failed_draft(held, fail.kind, fail.reason,
                                                                  fail.retry_after, fail.ttl)}};
}

Decision decide(const Seen& seen, const command::Renew& renew) {
  if (seen.absent()) return only(Gone{});
  const Record& held = seen.record();
  if (!seen.owned_by(renew.token)) return only(lost_to(held));
  if (!seen.processing()) return only(NotProcessing{held.status});
  const Micros left = held.lease_until - seen.now;
  if (renew.policy.max_total_lease) {
    // A fence is the store's time of the claim in µs (or, after a clock that went back, later).
    const Time claimed_at{Micros(static_cast<std::int64_t>(held.fence))};
    if (seen.now + renew.lease.micros() > claimed_at + renew.policy.max_total_lease->micros()) {
      return only(RenewRefused{std::max(left, Micros(0))});
    }
  }
  Draft draft = continued(held);
  draft.lease = std::max(renew.lease.micros(), left);
  draft.keep = keep_while_continued(held, seen.now, draft.lease, renew.policy);
  Renewed renewed;
  renewed.late = seen.state == LogicalState::processing_lapsed;
  return {renewed, WriteReplace{held.version, draft}};
}

Decision decide(const Seen& seen, const command::Release& release) {
  if (seen.absent()) return only(Released{});
  const Record& held = seen.record();
  if (!seen.owned_by(release.token)) return only(lost_to(held));
  if (!seen.processing()) return only(NotProcessing{held.status});
  return {Released{}, WriteRemove{held.version}};
}

// --- sweep and administration ----------------------------------------------------------------

Decision decide(const Seen& seen, const command::Abandon& abandon) {
  if (seen.state != LogicalState::processing_lapsed) return only(LeftAlone{});
  const Record& held = seen.record();
  if (claimed_under_hold(held)) return only(LeftAlone{});
  if (seen.now - held.update_time < abandon.stuck_after.micros()) return only(LeftAlone{});
  return {FailRecorded{},
          WriteReplace{held.version, failed_draft(held, FailKind::abandoned,
                                                  "abandoned: the attempt never reported",
                                                  Micros(0), abandon.ttl)}};
}

// nullopt: the administrator may act.
std::optional<Decision> refuse_admin(const Seen& seen, std::uint64_t fence) {
  if (seen.absent()) return only(StaleFence{0});
  if (seen.record().fence != fence) return only(StaleFence{seen.record().fence});
  if (!seen.processing()) return only(NotProcessing{seen.record().status});
  return std::nullopt;
}

Decision decide(const Seen& seen, const command::ForceRelease& force) {
  if (auto refused = refuse_admin(seen, force.fence)) return std::move(*refused);
  return {Released{}, WriteRemove{seen.record().version}};
}

Decision decide(const Seen& seen, const command::ForceFail& force) {
  if (auto refused = refuse_admin(seen, force.fence)) return std::move(*refused);
  return {FailRecorded{},
          WriteReplace{seen.record().version, failed_draft(seen.record(), force.kind, force.reason,
                                                           Micros(0), force.ttl)}};
}

Decision decide(const Seen& seen, const command::ForceComplete& force) {
  if (auto refused = refuse_admin(seen, force.fence)) return std::move(*refused);
  return store_success(seen.record(), force.result, false, force.ttl, Completed{});
}

}  // namespace

Decision step(const Record* held, const Command& command, Time now) {
  const Seen seen{held, now, logical_state(held, now)};
  return std::visit([&](const auto& one) { return decide(seen, one); }, command);
}

Outcome settle(Outcome outcome, const Record* before, const Record& written, Time now) {
  if (auto* granted = std::get_if<Granted>(&outcome)) {
    granted->token = written.token();
    granted->version = written.version;
    granted->attempt = written.attempt;
    granted->claimed_at = now;
    granted->lease_until = written.lease_until;
  } else if (auto* renewed = std::get_if<Renewed>(&outcome)) {
    renewed->lease_until = written.lease_until;
    renewed->version = written.version;
    renewed->now = now;
    renewed->late = before != nullptr && now >= before->lease_until;
  } else if (auto* completed = std::get_if<Completed>(&outcome)) {
    completed->late =
        before != nullptr && logical_state(before, now) != LogicalState::processing_live;
  }
  return outcome;
}

namespace {
constexpr std::string_view kTombstoneHead = "sha256:";
}

std::string tombstone_of(std::string_view result) {
  return std::string(kTombstoneHead) + Fingerprint::of_bytes(result).hex() + ":" +
         std::to_string(result.size());
}

Replay replay_of_tombstone(std::string_view stored) {
  Replay replay;
  replay.retained = false;
  constexpr std::size_t kHexDigits = 64;
  if (stored.size() > kTombstoneHead.size() + kHexDigits) {
    stored.remove_prefix(kTombstoneHead.size());
    if (auto digest = Fingerprint::from_hex(stored.substr(0, kHexDigits))) replay.digest = *digest;
    stored.remove_prefix(kHexDigits + 1);
    std::from_chars(stored.data(), stored.data() + stored.size(), replay.size);
  }
  return replay;
}

}  // namespace idem
