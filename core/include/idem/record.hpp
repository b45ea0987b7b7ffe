// The record: what a store keeps for one idempotency key. docs/semantics.md tells every field's
// use.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>

#include "idem/fingerprint.hpp"
#include "idem/time.hpp"

namespace idem {

enum class Status : std::uint8_t { processing = 0, success = 1, failed = 2 };

// Why a record failed. `abandoned`: the sweep gave up on an attempt that never reported.
enum class FailKind : std::uint8_t { none = 0, retryable = 1, final = 2, abandoned = 3 };

[[nodiscard]] std::string_view to_string(Status status) noexcept;
[[nodiscard]] std::string_view to_string(FailKind kind) noexcept;

// The 128-bit random token of one attempt, made before the first try of its claim.
struct Owner {
  std::array<std::uint8_t, 16> bytes{};

  // From the operating system's random generator, through OpenSSL. Thread safe, never repeats.
  [[nodiscard]] static Owner random();
  [[nodiscard]] static result<Owner> from_hex(std::string_view hex);
  [[nodiscard]] std::string hex() const;

  friend bool operator==(const Owner&, const Owner&) = default;
};

// What proves that a claim is still ours.
struct Token {
  Owner owner;
  std::uint64_t fence = 0;

  friend bool operator==(const Token&, const Token&) = default;
};

struct Record {
  Fingerprint request_hash;
  Owner owner;
  std::uint64_t version = 0;  // changes on every write: max(old + 1, store time in µs, fence)
  std::uint64_t fence = 0;    // the version written by the claim that made this attempt
  std::uint32_t attempt = 0;  // 1, 2, 3 ...
  Status status = Status::processing;
  FailKind fail_kind = FailKind::none;
  bool tombstone = false;  // `result` is digest and size of a result too large to keep
  Time lease_until{};      // processing only; at or after it the lease is over
  Time retry_at{};         // failed only
  Time create_time{};
  Time update_time{};  // while processing: the last claim or renewal
  Time expires_at{};   // at or after it the record is absent
  std::string result;  // first result or failure's reason: opaque bytes

  [[nodiscard]] Token token() const { return {owner, fence}; }
  [[nodiscard]] bool expired(Time now) const { return now >= expires_at; }

  friend bool operator==(const Record&, const Record&) = default;
};

// Versions, fences and times (in µs) are below this: no clock gets there, and adding to them does
// not overflow.
inline constexpr std::int64_t kVersionEnd = std::int64_t{1} << 62;

// What is impossible about a record that was read: a field that no write makes, or two that
// contradict each other. "" if nothing is. For whoever decodes records: what is damaged is
// errc::corrupt, never a replay, and its key is not free.
[[nodiscard]] std::string_view damage_of(const Record& record) noexcept;

}  // namespace idem
