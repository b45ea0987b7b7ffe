// The statements of the hot paths: their text, and the order of their parameters.
//
// Each is prepared once per connection and number of rows. A list of keys is filled up to a power
// of two by naming its last key again; an insert has as many rows as it has.
#pragma once

#include <array>
#include <cstddef>
#include <string>
#include <string_view>

namespace idem::mysql {

enum class Statement : std::uint8_t {
  insert_claims,  // size rows that say nothing but: claimed; after begin_insert_text()
  insert,         // size rows of any kind; after begin_insert_text()
  load,           // whole records of size keys: base, scale, then keys
  load_head,      // as load, but digest and result come back empty
  replace,        // one record, if its version is the expected one
  remove,         // one record, if its version is the expected one
  raise_floor,    // of versions
  clock,          // the server's time and the floor: base, scale
  // In a caller's transaction: see transaction.cpp.
  joined_insert,   // as insert, but reads the time itself
  load_locked,     // as load, and the rows are kept as they are until the transaction's end
  refresh_fence,   // of what was inserted before it: is_claim with base and scale; those; key
  lift_fence,      // of one record: is_claim with version; version; key
  joined_replace,  // as replace, in a session whose time zone may be any
};
inline constexpr std::size_t kStatements = 13;

// Around what is to be one transaction. Not BEGIN and COMMIT: a deadlock ends the transaction, and
// what is sent behind it would then be committed statement by statement. So it begins another one.
inline constexpr std::string_view kBegin = "SET autocommit = 0";
inline constexpr std::string_view kCommit = "SET autocommit = 1";
// Around inserts: begin_insert_text() and floor_check_text(), which sets @idem_above and tells it;
// then what commits only if that is so: else the transaction stays open.
inline constexpr std::string_view kCommitIfAbove = "SET autocommit = @idem_above";

inline constexpr std::size_t kRowsMax = 64;  // of one statement
inline constexpr std::size_t kInsertParameters = 16;
inline constexpr std::size_t kClaimParameters = 8;
inline constexpr std::size_t kKeyParameters = 3;

// The text of a statement for a table, for rows or keys of the given number.
[[nodiscard]] std::string statement_text(Statement statement, std::string_view table,
                                         std::size_t rows);

// Begins a transaction of inserts. All of them take the time that is read here, @idem_now (base +
// scale * the server's), and at least the version @idem_version: that time, or `floor` + 1. What a
// row does not compute by itself costs the server nothing per row.
[[nodiscard]] std::string begin_insert_text(std::int64_t base, std::int64_t scale,
                                            std::uint64_t floor);

// Whether @idem_version is above the table's floor of versions; and @idem_now. Not part of a SET:
// that would wait for whoever raises the floor.
[[nodiscard]] std::string floor_check_text(std::string_view table);

// The record's columns as every statement that reads them names them; then the server's time.
[[nodiscard]] std::string_view record_columns();

// An expression of two parameters, base and scale: base + scale * (the server's UTC in µs).
// (0, 1): the server's time. (t, 0): t, which stands in for it; see TimeSource. Fixed per
// statement, or read at each use: after a wait for a row, if that comes first.
[[nodiscard]] std::string_view statement_time();
[[nodiscard]] std::string_view running_time();

}  // namespace idem::mysql
