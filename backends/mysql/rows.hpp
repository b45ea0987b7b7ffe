// Records as rows: parameters of a statement, and columns of an answer.
#pragma once

#include <boost/mysql/field_view.hpp>
#include <boost/mysql/row_view.hpp>
#include <cstdint>
#include <string>
#include <vector>

#include "idem/clock.hpp"
#include "idem/store.hpp"

namespace idem::mysql {

using Fields = std::vector<boost::mysql::field_view>;

// The two parameters of every expression of time. The server's clock decides; only under a virtual
// clock, which tests use and which stands still, its instant is sent along and stands in for it.
struct TimeSource {
  std::int64_t base = 0;
  std::int64_t scale = 1;

  [[nodiscard]] static TimeSource of(const Clock& clock) {
    if (clock.offset() == Micros(0)) return {};
    return {clock.now().time_since_epoch().count(), 0};
  }
};

// A draft's values that are not in the form the columns have; must live until the statement is
// serialised.
struct DraftText {
  explicit DraftText(const Draft& draft);
  std::string request_hash;
  Fingerprint digest;
  bool has_digest = false;
};

void add_time(Fields& fields, TimeSource time);
void add_key(Fields& fields, KeyRef key);
// Of Statement::insert.
void add_insert(Fields& fields, const Insert& op, const DraftText& text);
// Of Statement::insert_claims; only if is_plain_claim().
void add_claim(Fields& fields, const Insert& op, const DraftText& text);
[[nodiscard]] bool is_plain_claim(const Draft& draft);
// Of Statement::joined_insert. `floor`: no version at or below it may be given.
void add_joined_insert(Fields& fields, const Insert& op, const DraftText& text, TimeSource time,
                       std::uint64_t floor);
// Whether the draft's fence is the version it gets, and moves with it.
void add_is_claim(Fields& fields, const Draft& draft);
void add_replace(Fields& fields, const Replace& op, const DraftText& text, TimeSource time);

// Columns in the order of record_columns(), then the time and, in the hot statements, the floor.
struct RowHead {
  KeyRef key;  // borrowed from the row
  Time now{};
  std::uint64_t floor = 0;
};
inline constexpr std::size_t kRecordColumns = 18;
inline constexpr std::size_t kTimeColumn = kRecordColumns;
inline constexpr std::size_t kFloorColumn = kRecordColumns + 1;

[[nodiscard]] RowHead read_head(boost::mysql::row_view row);

// corrupt: a value that no write of ours could have left, or a result that does not fit its digest.
[[nodiscard]] result<void> read_record(boost::mysql::row_view row, Record& record);

// A string or blob column; a number of either sign. Empty and 0 for what is neither.
[[nodiscard]] std::string_view bytes_of(boost::mysql::field_view field);
[[nodiscard]] std::uint64_t unsigned_of(boost::mysql::field_view field);
[[nodiscard]] std::int64_t signed_of(boost::mysql::field_view field);

}  // namespace idem::mysql
