#include "idem/record.hpp"

#include <openssl/rand.h>

#include <cstdlib>

#include "hex.hpp"
#include "idem/store.hpp"

namespace idem {

std::string_view to_string(Status status) noexcept {
  switch (status) {
    case Status::processing:
      return "processing";
    case Status::success:
      return "success";
    case Status::failed:
      return "failed";
  }
  return "?";
}

std::string_view to_string(FailKind kind) noexcept {
  switch (kind) {
    case FailKind::none:
      return "none";
    case FailKind::retryable:
      return "retryable";
    case FailKind::final:
      return "final";
    case FailKind::abandoned:
      return "abandoned";
  }
  return "?";
}

Owner Owner::random() {
  Owner owner;
  // Without randomness no token is unique: there is no safe way to go on.
  if (RAND_bytes(owner.bytes.data(), static_cast<int>(owner.bytes.size())) != 1) std::abort();
  return owner;
}

result<Owner> Owner::from_hex(std::string_view hex) {
  const auto bytes = detail::from_hex<16>(hex);
  if (!bytes) return idem::fail(errc::invalid_argument, "an owner token is 32 hexadecimal digits");
  return Owner{*bytes};
}

std::string Owner::hex() const { return detail::to_hex(bytes); }

namespace {

bool in_range(Time time) {
  const std::int64_t micros = time.time_since_epoch().count();
  return micros >= 0 && micros < kVersionEnd;
}

std::string_view damage_of_times(const Record& record) {
  for (const Time time : {record.lease_until, record.retry_at, record.create_time,
                          record.update_time, record.expires_at})
    if (!in_range(time)) return "a time is out of range";
  if (record.update_time < record.create_time) return "update_time is before create_time";
  if (record.expires_at < record.update_time) return "expires_at is before update_time";
  const bool processing = record.status == Status::processing;
  if (processing ? record.lease_until < record.update_time : record.lease_until != Time{})
    return "lease_until does not fit the status";
  const bool failed = record.status == Status::failed;
  if (failed ? record.retry_at < record.update_time : record.retry_at != Time{})
    return "retry_at does not fit the status";
  return {};
}

}  // namespace

std::string_view damage_of(const Record& record) noexcept {
  if (record.status > Status::failed) return "status is out of range";
  if (record.fail_kind > FailKind::abandoned) return "fail_kind is out of range";
  if ((record.fail_kind == FailKind::none) != (record.status != Status::failed))
    return "fail_kind does not fit the status";
  if (record.attempt == 0) return "attempt is 0";
  constexpr auto kEnd = static_cast<std::uint64_t>(kVersionEnd);
  if (record.version == 0 || record.version >= kEnd) return "version is out of range";
  if (record.fence == 0 || record.fence > record.version) return "fence is out of range";
  return damage_of_times(record);
}

void record_of(const Draft& draft, std::uint64_t version, Time now, Time create_time,
               Record& record) {
  record.request_hash = draft.request_hash;
  record.owner = draft.owner;
  record.version = version;
  record.fence = draft.fence == 0 ? version : draft.fence;
  record.attempt = draft.attempt;
  record.status = draft.status;
  record.fail_kind = draft.fail_kind;
  record.tombstone = draft.tombstone;
  record.lease_until = draft.status == Status::processing ? now + draft.lease : Time{};
  record.retry_at = draft.status == Status::failed ? now + draft.retry_after : Time{};
  record.create_time = create_time;
  record.update_time = now;
  record.expires_at = now + draft.keep;
  record.result.assign(draft.result);
}

}  // namespace idem
