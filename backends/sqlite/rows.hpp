// Between records and rows.
#pragma once

#include <string>
#include <string_view>

#include "connection.hpp"
#include "idem/key.hpp"
#include "idem/store.hpp"

namespace idem::sqlite {

// The columns of read_record(), in its order.
inline constexpr std::string_view kRecordColumns =
    "request_hash, status, owner, version, fence, attempt, lease_until, retry_at, fail_kind, "
    "flags, "
    "create_time, update_time, expires_at, result_digest, result_json";
inline constexpr int kRecordColumnCount = 15;

// Reads the record whose columns begin at `first` into `record`, keeping its buffers.
// corrupt: a value that no writer of ours made, or a result that does not fit its digest.
[[nodiscard]] result<void> read_record(const Statement& row, int first, KeyRef key, Record& record);

// idempotent_meta holds what no writer of ours leaves there.
[[nodiscard]] Error damaged_floor(const Connection& connection);

// Binds the triple to the parameters first, first + 1, first + 2.
void bind_key(Statement& statement, int first, KeyRef key);

// A record's texts and digest, for as long as they are bound.
class BoundRecord {
 public:
  // Binds the columns of kRecordColumns, in that order, to the parameters from `first`.
  BoundRecord(Statement& statement, int first, const Record& record);

 private:
  std::string request_hash_;
  std::string owner_;
  Fingerprint digest_;
};

}  // namespace idem::sqlite
