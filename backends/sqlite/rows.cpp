#include "rows.hpp"

#include <string>

namespace idem::sqlite {
namespace {

constexpr std::int64_t kTombstone = 1;

std::string_view bytes_of(const Fingerprint& digest) {
  return {reinterpret_cast<const char*>(digest.bytes.data()), digest.bytes.size()};
}

std::string name_of(KeyRef key) {
  std::string name = "the record of key '" + std::string(key.key) + "'";
  if (!key.biz_type.empty()) name += ", biz_type '" + std::string(key.biz_type) + "'";
  if (!key.tenant.empty()) name += ", tenant '" + std::string(key.tenant) + "'";
  return name;
}

}  // namespace

result<void> read_record(const Statement& row, int first, KeyRef key, Record& record) {
  const auto corrupt = [&](std::string_view what) {
    return fail(errc::corrupt, name_of(key) + " is damaged: " + std::string(what) +
                                   "; it is left as it is: check the disk and the backups");
  };
  const auto hash = Fingerprint::from_hex(row.text(first));
  const auto owner = Owner::from_hex(row.text(first + 2));
  const std::int64_t status = row.integer(first + 1);
  const std::int64_t kind = row.integer(first + 8);
  const std::int64_t attempt = row.integer(first + 5);
  if (!hash) return corrupt("request_hash is not 64 hexadecimal digits");
  if (!owner) return corrupt("owner is not 32 hexadecimal digits");
  const std::int64_t flags = row.integer(first + 9);
  if (status < 0 || status > 2 || kind < 0 || kind > 3 || attempt < 0 || attempt > UINT32_MAX)
    return corrupt("status, fail_kind or attempt is out of range");
  if (flags != 0 && flags != kTombstone) return corrupt("flags are out of range");
  record.request_hash = *hash;
  record.status = static_cast<Status>(status);
  record.owner = *owner;
  record.version = row.version(first + 3);
  record.fence = row.version(first + 4);
  record.attempt = static_cast<std::uint32_t>(attempt);
  record.lease_until = row.time(first + 6);
  record.retry_at = row.time(first + 7);
  record.fail_kind = static_cast<FailKind>(kind);
  record.tombstone = flags == kTombstone;
  record.create_time = row.time(first + 10);
  record.update_time = row.time(first + 11);
  record.expires_at = row.time(first + 12);
  record.result.assign(row.blob(first + 14));
  const std::string_view digest = row.blob(first + 13);
  if (record.result.empty() ? !digest.empty()
                            : digest != bytes_of(Fingerprint::of_bytes(record.result)))
    return corrupt("the result does not fit its digest");
  if (const std::string_view damage = damage_of(record); !damage.empty()) return corrupt(damage);
  return {};
}

Error damaged_floor(const Connection& connection) {
  return fail(errc::corrupt,
              connection.path() +
                  ": idempotent_meta is damaged: a floor is out of range; it is left "
                  "as it is: check the disk and the backups");
}

void bind_key(Statement& statement, int first, KeyRef key) {
  statement.bind_text(first, key.tenant);
  statement.bind_text(first + 1, key.biz_type);
  statement.bind_text(first + 2, key.key);
}

BoundRecord::BoundRecord(Statement& statement, int first, const Record& record)
    : request_hash_(record.request_hash.hex()), owner_(record.owner.hex()) {
  statement.bind_text(first, request_hash_);
  statement.bind(first + 1, static_cast<std::int64_t>(record.status));
  statement.bind_text(first + 2, owner_);
  statement.bind_version(first + 3, record.version);
  statement.bind_version(first + 4, record.fence);
  statement.bind(first + 5, std::int64_t{record.attempt});
  statement.bind(first + 6, record.lease_until);
  statement.bind(first + 7, record.retry_at);
  statement.bind(first + 8, static_cast<std::int64_t>(record.fail_kind));
  statement.bind(first + 9, record.tombstone ? kTombstone : 0);
  statement.bind(first + 10, record.create_time);
  statement.bind(first + 11, record.update_time);
  statement.bind(first + 12, record.expires_at);
  if (!record.result.empty()) digest_ = Fingerprint::of_bytes(record.result);
  statement.bind_blob(first + 13, record.result.empty() ? std::string_view() : bytes_of(digest_));
  statement.bind_blob(first + 14, record.result);
}

}  // namespace idem::sqlite
