#include "rows.hpp"

#include <algorithm>
#include <boost/mysql/blob_view.hpp>
#include <span>

namespace idem::mysql {
namespace {

using boost::mysql::blob_view;
using boost::mysql::field_view;

constexpr std::uint64_t kTombstoneFlag = 1;

// As binary: text of another character set would be converted on its way into the column.
field_view blob(std::string_view bytes) {
  return field_view(blob_view(reinterpret_cast<const unsigned char*>(bytes.data()), bytes.size()));
}

field_view blob(std::span<const std::uint8_t> bytes) {
  return field_view(blob_view(bytes.data(), bytes.size()));
}

field_view number(std::uint64_t value) { return field_view(value); }
field_view number(std::int64_t value) { return field_view(value); }
field_view flag(bool value) { return field_view(std::int64_t{value ? 1 : 0}); }

void add_times(Fields& fields, const Draft& draft) {
  fields.push_back(number(draft.lease.count()));
  fields.push_back(number(draft.retry_after.count()));
}

void add_state(Fields& fields, const Draft& draft) {
  fields.push_back(number(std::uint64_t{draft.attempt}));
  fields.push_back(number(std::uint64_t{static_cast<std::uint8_t>(draft.status)}));
  fields.push_back(number(std::uint64_t{static_cast<std::uint8_t>(draft.fail_kind)}));
  fields.push_back(number(draft.tombstone ? kTombstoneFlag : std::uint64_t{0}));
}

void add_result(Fields& fields, const Draft& draft, const DraftText& text) {
  fields.push_back(text.has_digest ? blob(text.digest.bytes) : blob(std::string_view()));
  fields.push_back(blob(draft.result));
}

void add_identity(Fields& fields, const Insert& op, const DraftText& text) {
  add_key(fields, op.key);
  fields.emplace_back(text.request_hash);
  fields.push_back(blob(op.draft.owner.bytes));
}

void add_values(Fields& fields, const Draft& draft, const DraftText& text) {
  fields.push_back(number(draft.fence));
  fields.push_back(number(draft.fence));
  add_state(fields, draft);
  add_times(fields, draft);
  fields.push_back(number(draft.keep.count()));
  add_result(fields, draft, text);
}

Error corrupt(std::string_view column) {
  return fail(errc::corrupt,
              "column '" + std::string(column) + "' holds what no write of ours could have left");
}

Time time_of(field_view field) { return Time{Micros(signed_of(field))}; }

}  // namespace

DraftText::DraftText(const Draft& draft)
    : request_hash(draft.request_hash.hex()), has_digest(!draft.result.empty()) {
  if (has_digest) digest = Fingerprint::of_bytes(draft.result);
}

void add_time(Fields& fields, TimeSource time) {
  fields.push_back(number(time.base));
  fields.push_back(number(time.scale));
}

void add_key(Fields& fields, KeyRef key) {
  fields.push_back(blob(key.tenant));
  fields.push_back(blob(key.biz_type));
  fields.push_back(blob(key.key));
}

void add_insert(Fields& fields, const Insert& op, const DraftText& text) {
  add_identity(fields, op, text);
  add_values(fields, op.draft, text);
}

bool is_plain_claim(const Draft& draft) {
  return draft.fence == 0 && draft.status == Status::processing &&
         draft.fail_kind == FailKind::none && !draft.tombstone && draft.result.empty();
}

void add_claim(Fields& fields, const Insert& op, const DraftText& text) {
  add_identity(fields, op, text);
  fields.push_back(number(std::uint64_t{op.draft.attempt}));
  fields.push_back(number(op.draft.lease.count()));
  fields.push_back(number(op.draft.keep.count()));
}

void add_joined_insert(Fields& fields, const Insert& op, const DraftText& text, TimeSource time,
                       std::uint64_t floor) {
  add_identity(fields, op, text);
  add_time(fields, time);
  fields.push_back(number(floor + 1));
  add_values(fields, op.draft, text);
}

void add_is_claim(Fields& fields, const Draft& draft) { fields.push_back(flag(draft.fence == 0)); }

void add_replace(Fields& fields, const Replace& op, const DraftText& text, TimeSource time) {
  add_time(fields, time);
  fields.push_back(number(op.draft.fence));
  fields.push_back(number(op.draft.fence));
  fields.emplace_back(text.request_hash);
  fields.push_back(blob(op.draft.owner.bytes));
  add_state(fields, op.draft);
  add_times(fields, op.draft);
  fields.push_back(flag(op.draft.fresh));
  fields.push_back(number(op.draft.keep.count()));
  add_result(fields, op.draft, text);
  add_key(fields, op.key);
  fields.push_back(number(op.expected));
  fields.push_back(flag(op.draft.fresh));
  add_time(fields, time);
}

RowHead read_head(boost::mysql::row_view row) {
  RowHead head;
  head.key = {bytes_of(row[0]), bytes_of(row[1]), bytes_of(row[2])};
  if (row.size() > kTimeColumn) head.now = time_of(row[kTimeColumn]);
  if (row.size() > kFloorColumn) head.floor = unsigned_of(row[kFloorColumn]);
  return head;
}

result<void> read_record(boost::mysql::row_view row, Record& record) {
  const auto hash = Fingerprint::from_hex(bytes_of(row[3]));
  if (!hash) return corrupt("request_hash");
  record.request_hash = *hash;
  const std::string_view owner = bytes_of(row[4]);
  if (owner.size() != record.owner.bytes.size()) return corrupt("owner");
  std::copy(owner.begin(), owner.end(), record.owner.bytes.begin());
  record.version = unsigned_of(row[5]);
  record.fence = unsigned_of(row[6]);
  record.attempt = static_cast<std::uint32_t>(unsigned_of(row[7]));
  const std::uint64_t status = unsigned_of(row[8]);
  const std::uint64_t kind = unsigned_of(row[9]);
  if (status > static_cast<std::uint64_t>(Status::failed)) return corrupt("status");
  if (kind > static_cast<std::uint64_t>(FailKind::abandoned)) return corrupt("fail_kind");
  record.status = static_cast<Status>(status);
  record.fail_kind = static_cast<FailKind>(kind);
  record.tombstone = (unsigned_of(row[10]) & kTombstoneFlag) != 0;
  record.lease_until = time_of(row[11]);
  record.retry_at = time_of(row[12]);
  record.create_time = time_of(row[13]);
  record.update_time = time_of(row[14]);
  record.expires_at = time_of(row[15]);
  const std::string_view digest = bytes_of(row[16]);
  const std::string_view kept = bytes_of(row[17]);
  if (digest.empty() != kept.empty()) return corrupt("result_digest");
  if (!kept.empty()) {
    const Fingerprint made = Fingerprint::of_bytes(kept);
    if (!std::equal(digest.begin(), digest.end(), made.bytes.begin(), made.bytes.end(),
                    [](char a, std::uint8_t b) { return static_cast<std::uint8_t>(a) == b; })) {
      return corrupt("result_json");
    }
  }
  record.result.assign(kept);
  return {};
}

std::string_view bytes_of(field_view field) {
  if (field.is_blob()) {
    const blob_view bytes = field.get_blob();
    return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
  }
  if (field.is_string()) return {field.get_string().data(), field.get_string().size()};
  return {};
}

std::uint64_t unsigned_of(field_view field) {
  if (field.is_uint64()) return field.get_uint64();
  if (field.is_int64()) return static_cast<std::uint64_t>(field.get_int64());
  return 0;
}

std::int64_t signed_of(field_view field) {
  if (field.is_int64()) return field.get_int64();
  if (field.is_uint64()) return static_cast<std::int64_t>(field.get_uint64());
  return 0;
}

}  // namespace idem::mysql
