// The SQLite store: one file, shared by the processes of one machine.
//
// WAL and synchronous=FULL: an acknowledged write survives a power cut. One connection per store
// writes, through a combiner: concurrent calls become one transaction and one fsync. Readers run
// beside it. Local file systems only: the locks of network file systems cannot be trusted.
#pragma once

#include <string>

#include "idem/backend.hpp"
#include "idem/store.hpp"
#include "idem/time.hpp"

struct sqlite3;

namespace idem {

// The largest result a record takes.
inline constexpr std::uint64_t kSqliteResultBytesMax = std::uint64_t{16} << 20;

struct SqliteOptions {
  enum class Synchronous : std::uint8_t {
    full,    // every acknowledged write survives a power cut
    normal,  // a power cut may undo the last writes, never out of order; ten times as fast alone
  };

  std::string path;  // relative to the working directory at open; ":memory:" for a private database
  Synchronous synchronous = Synchronous::full;
  Duration busy_timeout = std::chrono::seconds(5);  // how long to wait for another process's write
  bool create = true;           // false: what is not there is not made, file or tables
  std::size_t readers = 4;      // connections that read at once, opened when needed
  std::uint64_t pages_max = 0;  // of 4 KiB; more is capacity. 0: as many as the disk holds
  Clock* clock = nullptr;       // nullptr: system_clock(). Must outlive the store
};

// Opens the database, makes it if it is not there, and makes or verifies the tables.
//
// cannot_open  no such directory, no such store and not `create`, not a file, not a SQLite
//              database, no WAL on this file system, a table of that name that is not ours, or a
//              newer version's
// capacity     the disk is full
// read_only    the file or its directory cannot be written
// corrupt      the file is damaged
// busy         another process held it for longer than busy_timeout
[[nodiscard]] result<StorePtr> open_sqlite(const SqliteOptions& options);

// The store inside a transaction of the caller's own: what it writes lasts if and only if the
// caller's statements do. Begin with BEGIN IMMEDIATE; a write outside such a transaction is
// invalid_argument. Keep the store as long as the connection, over many transactions; it borrows
// the connection, and is used by one thread at a time, as that is. Answers say "written" before the
// commit: others see nothing until then.
//
// A write that SQLite refuses (capacity, unavailable) rolls the whole transaction back, so that no
// business is committed without its record; the caller's COMMIT then fails.
// cannot_open: the tables are not there, or not ours; they are not made here.
[[nodiscard]] result<StorePtr> sqlite_in_transaction(sqlite3* connection, Clock* clock = nullptr);

// The tables and indexes, as SQL.
[[nodiscard]] std::string sqlite_schema();

[[nodiscard]] Backend sqlite_backend();

}  // namespace idem
