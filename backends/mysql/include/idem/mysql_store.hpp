// The MySQL and MariaDB store: one table of a database, shared by all processes that reach it.
//
// A few connections of our own, each with its statements prepared once, driven by a combiner:
// concurrent calls become one multi-row statement and one commit. The server's clock decides
// everything; the caller's is never asked. Every wait for the network has a deadline; a connection
// whose reply did not come in time is closed, so a late reply never answers another question.
// Does not need, and never uses, a transaction of the caller.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "idem/backend.hpp"
#include "idem/store.hpp"
#include "idem/store_url.hpp"
#include "idem/time.hpp"

namespace idem {

// The largest result a record takes, if the server's max_allowed_packet allows: a MEDIUMBLOB.
inline constexpr std::uint64_t kMysqlResultBytesMax = (std::uint64_t{1} << 24) - 1;

struct MysqlOptions {
  enum class Tls : std::uint8_t {
    disable,  // never; a password then crosses the network protected only by its own protocol
    enable,   // if the server offers it; nobody is verified
    require,  // or no connection; nobody is verified
    verify,   // require, and the certificate must be valid and name the host
  };
  enum class Layout : std::uint8_t {
    clustered,  // the triple is the primary key: duplicates of a hot key are cheaper
    articles,   // BIGINT id, and a unique key over the triple
  };

  std::string host = "127.0.0.1";  // a name that does not resolve may block longer than `timeout`
  std::uint16_t port = 3306;
  std::string socket;  // path of a unix socket, instead of host and port
  std::string user;
  std::string password;
  std::string database;
  std::string table = "idempotent_record";  // [A-Za-z0-9_]{1,48}; `<table>_meta` belongs to it
  // Of a table to be made; nullopt: clustered. An existing table must be of that layout; nullopt:
  // either.
  std::optional<Layout> layout;
  bool create = true;  // false: tables that are not there are not made, but cannot_open
  Tls tls = Tls::enable;
  std::string ca;                              // verify: PEM file; empty: the system's authorities
  std::size_t connections = 4;                 // 1..64
  Duration timeout = std::chrono::seconds(3);  // of one batch, all its round trips together
  std::optional<Durability> min_durability;    // open_mysql refuses a server that keeps less
  Clock* clock = nullptr;  // nullptr: system_clock(). A virtual clock stands in for the server's
};

// mysql://user:password@host:port/database?table=&layout=&socket=&tls=&ca=&connections=&timeout=
//     &min_durability=none|process|power
// invalid_argument says which part is wrong and how to write it.
[[nodiscard]] result<MysqlOptions> mysql_options(const StoreUrl& url);

// Connects, makes the tables if they are not there (unless options.create is false), and verifies
// them.
//
// unavailable  no server there, or it takes no more connections
// denied       user, password or rights
// cannot_open  no such database; a table that is not ours or does not keep keys apart byte for
//              byte; the message holds the statement that mends it
[[nodiscard]] result<StorePtr> open_mysql(const MysqlOptions& options);

// The tables of a layout, as SQL.
[[nodiscard]] std::string mysql_schema(MysqlOptions::Layout layout,
                                       std::string_view table = "idempotent_record");

[[nodiscard]] Backend mysql_backend();

}  // namespace idem
