// The statements of the hot paths: their text, and the order of their parameters.
//
// Each is prepared once per connection and size. Sizes are powers of two: a batch of inserts is cut
// into them, a batch of reads is filled up by naming its last key again.
#pragma once

#include <array>
#include <cstddef>
#include <string>
#include <string_view>

namespace idem::mysql {

enum class Statement : std::uint8_t {
  insert,       // size rows, kInsertParameters each
  load,         // whole records of size keys: base, scale, then keys
  load_head,    // as load, but digest and result come back empty
  replace,      // one record, if its version is the expected one
  remove,       // one record, if its version is the expected one
  raise_fence,  // the records the statement before it has inserted: see inserts.cpp
  raise_floor,  // of versions
  clock,        // the server's time and the floor: base, scale
  // In a caller's transaction: see transaction.cpp.
  load_locked,     // as load, and the rows are kept as they are until the transaction's end
  refresh_fence,   // of the record the statement before it has inserted: base and scale, twice; key
  lift_fence,      // of one record: version, twice; key
  joined_replace,  // as replace, in a session whose time zone may be any
};
inline constexpr std::size_t kStatements = 12;

// Around what is to be one transaction. Not BEGIN and COMMIT: a deadlock ends the transaction, and
// what is sent behind it would then be committed statement by statement. So it begins another one.
inline constexpr std::string_view kBegin = "SET autocommit = 0";
inline constexpr std::string_view kCommit = "SET autocommit = 1";

inline constexpr std::size_t kSizes = 7;  // 1, 2, 4 ... 64
inline constexpr std::size_t kSizeMax = std::size_t{1} << (kSizes - 1);
inline constexpr std::size_t kInsertParameters = 18;
inline constexpr std::size_t kKeyParameters = 3;

// Which of the sizes holds n, 1 <= n <= kSizeMax: the smallest not less, and the largest not more.
[[nodiscard]] std::size_t size_index_above(std::size_t n);
[[nodiscard]] std::size_t size_index_below(std::size_t n);

// The text of a statement for a table, for rows or keys of the given number.
[[nodiscard]] std::string statement_text(Statement statement, std::string_view table,
                                         std::size_t size);

// The record's columns as every statement that reads them names them; then the server's time.
[[nodiscard]] std::string_view record_columns();

// An expression of two parameters, base and scale: base + scale * (the server's UTC in µs).
// (0, 1): the server's time. (t, 0): t, which stands in for it; see TimeSource. Fixed per
// statement, or read at each use: after a wait for a row, if that comes first.
[[nodiscard]] std::string_view statement_time();
[[nodiscard]] std::string_view running_time();

}  // namespace idem::mysql
