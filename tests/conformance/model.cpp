#include "model.hpp"

#include <algorithm>

#include "idem/testing/describe.hpp"

namespace idem::conformance {
namespace {

using namespace std::chrono_literals;
using testing::describe;

constexpr Micros kLease = 30s;
constexpr Micros kStuckAfter = 600s;
constexpr Micros kKeep = 24h;  // result_ttl and failed_ttl
constexpr std::uint32_t kCap = 2;

std::string claimed(ClaimKind kind, std::uint32_t attempt, Micros left) {
  return "claimed " + std::string(to_string(kind)) + ", attempt " + std::to_string(attempt) +
         ", lease left " + testing::length(left);
}

std::string in_doubt(std::uint32_t attempt) { return "in doubt " + std::to_string(attempt); }

void grant(Model::Entry& entry, const Owner& owner, Rule rule, Time now) {
  entry.owner = owner;
  entry.status = Status::processing;
  entry.kind = FailKind::none;
  entry.result.clear();
  entry.lease_until = now + kLease;
  entry.touched = now;
  entry.held = rule == Rule::hold;
  entry.expires = entry.lease_until + (entry.held ? kDurationMax : kKeep);
}

}  // namespace

PolicyPatch patch_of(Rule rule) {
  PolicyPatch patch;
  if (rule == Rule::hold) patch.on_lapsed = OnLapsed::hold;
  if (rule == Rule::no_retry) patch.retry_failed = false;
  if (rule == Rule::capped) patch.max_attempts = kCap;
  return patch;
}

std::string line(const result<ClaimOutcome>& answer) {
  if (answer.has_error()) return describe(answer.error());
  if (const auto* given = std::get_if<Claimed>(&*answer)) {
    return claimed(given->lease.kind(), given->lease.attempt(), given->lease.lease_left());
  }
  if (const auto* doubt = std::get_if<InDoubt>(&*answer)) return in_doubt(doubt->attempt);
  return describe(answer);
}

Model::Entry* Model::alive(const std::string& key, Time now) {
  const auto found = entries_.find(key);
  return found == entries_.end() || now >= found->second.expires ? nullptr : &found->second;
}

std::string Model::lost(const Entry& entry) {
  return entry.status == Status::success ? describe(Lost{entry.result}) : describe(Lost{});
}

Model::ClaimAnswer Model::claim(const std::string& key, const std::string& body, const Owner& owner,
                                Rule rule, Time now) {
  Entry* const found = alive(key, now);
  if (found == nullptr) {
    Entry& made = entries_[key] = Entry{};
    made.body = body;
    grant(made, owner, rule, now);
    return {claimed(ClaimKind::fresh, 1, kLease), true};
  }
  Entry& entry = *found;
  if (entry.body != body) return {describe(Mismatch{})};
  const bool own = entry.owner == owner;
  if (entry.status == Status::success) {
    return {describe(Replay{entry.result, own, true, entry.result.size(), {}})};
  }
  if (entry.status == Status::failed) {
    const bool retried = rule != Rule::no_retry && entry.kind != FailKind::final;
    if (!retried) return {describe(Failed{entry.result, entry.kind})};
    if (now < entry.retry_at) return {describe(Backoff{entry.retry_at - now})};
    if (rule == Rule::capped && entry.attempt >= kCap) {
      return {describe(Failed{entry.result, entry.kind})};
    }
    ++entry.attempt;
    grant(entry, owner, rule, now);
    return {claimed(ClaimKind::retry, entry.attempt, kLease), true};
  }
  if (now < entry.lease_until) {
    if (!own) return {describe(InProgress{entry.lease_until - now, entry.attempt})};
    const Time until = std::max(entry.lease_until, now + kLease);
    const Time expires = entry.expires;
    grant(entry, owner, rule, now);
    entry.lease_until = until;
    entry.expires = std::max(entry.expires, expires);
    entry.held = entry.expires - entry.lease_until >= kDurationMax;
    return {claimed(ClaimKind::resumed, entry.attempt, until - now)};
  }
  if (!own && rule == Rule::hold) return {in_doubt(entry.attempt)};
  if (!own && rule == Rule::capped && entry.attempt >= kCap) {
    return {describe(Exhausted{entry.attempt})};
  }
  if (!own) ++entry.attempt;
  grant(entry, owner, rule, now);
  return {claimed(ClaimKind::takeover, entry.attempt, kLease), true};
}

std::string Model::complete(const std::string& key, const Token& token, const std::string& result,
                            Time now) {
  Entry* const entry = alive(key, now);
  if (entry == nullptr) return describe(Gone{});
  if (Token{entry->owner, entry->fence} != token) return lost(*entry);
  if (entry->status == Status::success) {
    return entry->result == result ? describe(Completed{false, true})
                                   : describe(Conflict{entry->result});
  }
  const bool abandoned = entry->kind == FailKind::abandoned;
  if (entry->status == Status::failed && !abandoned) return describe(NotProcessing{Status::failed});
  const bool late = abandoned || now >= entry->lease_until;
  entry->status = Status::success;
  entry->kind = FailKind::none;
  entry->result = result;
  entry->expires = now + kKeep;
  return describe(Completed{late, false});
}

std::string Model::fail(const std::string& key, const Token& token, FailKind kind,
                        Micros retry_after, Time now) {
  Entry* const entry = alive(key, now);
  if (entry == nullptr) return describe(Gone{});
  if (Token{entry->owner, entry->fence} != token) return lost(*entry);
  if (entry->status == Status::success) return describe(NotProcessing{Status::success});
  if (entry->status == Status::failed) return describe(FailRecorded{true});
  entry->status = Status::failed;
  entry->kind = kind;
  entry->result = "why";
  entry->retry_at = now + retry_after;
  entry->expires = now + kKeep;
  return describe(FailRecorded{});
}

std::string Model::renew(const std::string& key, const Token& token, Micros lease, bool hold,
                         Time now) {
  Entry* const entry = alive(key, now);
  if (entry == nullptr) return describe(Gone{});
  if (Token{entry->owner, entry->fence} != token) return lost(*entry);
  if (entry->status != Status::processing) return describe(NotProcessing{entry->status});
  const bool late = now >= entry->lease_until;
  entry->lease_until = std::max(entry->lease_until, now + lease);
  entry->touched = now;
  entry->expires = std::max(entry->expires, entry->lease_until + (hold ? kDurationMax : kKeep));
  entry->held = entry->expires - entry->lease_until >= kDurationMax;
  return describe(Renewed{late, entry->lease_until, 0, now});
}

std::string Model::release(const std::string& key, const Token& token, Time now) {
  const Entry* const entry = alive(key, now);
  if (entry == nullptr) return describe(Released{});
  if (Token{entry->owner, entry->fence} != token) return lost(*entry);
  if (entry->status != Status::processing) return describe(NotProcessing{entry->status});
  entries_.erase(key);
  return describe(Released{});
}

std::string Model::force_release(const std::string& key, std::uint64_t fence, Time now) {
  const Entry* const entry = alive(key, now);
  if (entry == nullptr || entry->fence != fence || entry->status != Status::processing) {
    return "stale_fence";
  }
  entries_.erase(key);
  return "done";
}

std::string Model::get(const std::string& key, Time now) const {
  const auto found = entries_.find(key);
  if (found == entries_.end() || now >= found->second.expires) return "absent";
  const Entry& entry = found->second;
  return std::string(to_string(entry.status)) + " " + std::string(to_string(entry.kind)) +
         ", attempt " + std::to_string(entry.attempt) + ", " + testing::quote(entry.result);
}

std::string Model::sweep(Time now) {
  Swept swept;
  for (auto at = entries_.begin(); at != entries_.end();) {
    Entry& entry = at->second;
    if (now >= entry.expires) {
      ++swept.expired;
      at = entries_.erase(at);
      continue;
    }
    const bool stuck = entry.status == Status::processing && now >= entry.lease_until &&
                       now - entry.touched >= kStuckAfter && !entry.held;
    if (stuck) {
      ++swept.abandoned;
      entry.status = Status::failed;
      entry.kind = FailKind::abandoned;
      entry.result = "abandoned: the attempt never reported";
      entry.retry_at = now;
      entry.expires = now + kKeep;
    }
    ++at;
  }
  return describe(swept);
}

}  // namespace idem::conformance
