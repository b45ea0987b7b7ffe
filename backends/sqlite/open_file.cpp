#include "open_file.hpp"

#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <system_error>

#include "file_identity.hpp"
#include "idem/clock.hpp"
#include "schema.hpp"

namespace idem::sqlite {
namespace {

namespace fs = std::filesystem;

// Why a file may not be written, after access() said so.
result<void> refuse_write(const std::string& path, const std::string& why_not) {
  if (errno != EROFS) return fail(errc::read_only, path + why_not);
  return fail(errc::read_only,
              path + " lies on a file system that is mounted read-only: remount it " +
                  "(mount -o remount,rw), or copy the file with its -wal elsewhere" +
                  " to look at it");
}

// Says in our words what SQLite would report as "unable to open" or only at the first write.
result<void> check_place(const std::string& path, bool create) {
  std::error_code error;
  const fs::path directory = fs::path(path).parent_path();
  const auto there = fs::status(path, error);
  if (fs::is_directory(there))
    return fail(errc::cannot_open, path + " is a directory: name a file in it");
  if (!fs::is_directory(directory, error))
    return fail(errc::cannot_open, "there is no directory " + directory.string() + " for " + path +
                                       ": make it first (mkdir -p)");
  if (fs::exists(there) && !fs::is_regular_file(there))
    return fail(errc::cannot_open, path + " is not a regular file: name another one");
  if (fs::exists(there) && access(path.c_str(), R_OK) != 0)
    return fail(errc::denied, path + " may not be read by this user");
  if (fs::exists(there) && access(path.c_str(), W_OK) != 0)
    return refuse_write(path, " may not be written by this user: chmod u+w, or run as its owner");
  if (!create && !fs::exists(there))
    return fail(errc::cannot_open,
                "there is no store " + path + ": nothing was claimed there yet; check the path");
  if (access(directory.c_str(), W_OK | X_OK) != 0)
    return refuse_write(
        "directory " + directory.string() + " of " + path,
        " may not be written by this user: SQLite keeps its log (-wal) beside the file");
  return {};
}

// The switch to WAL needs the file for itself for a moment, and SQLite does not wait for it.
result<void> switch_to_wal(Connection& connection, Micros busy_timeout) {
  const Time until = system_clock().now() + busy_timeout;
  for (;;) {
    const auto mode = connection.text_of("PRAGMA journal_mode=WAL");
    if (mode && *mode == "wal") return {};
    if (mode)
      return fail(errc::cannot_open,
                  connection.path() + ": no write-ahead log here (journal_mode stays \"" + *mode +
                      "\"); use a local file system, network shares cannot do it");
    if (mode.error().code != errc::busy || system_clock().now() >= until) return mode.error();
    system_clock().pause(std::chrono::milliseconds(1));
  }
}

result<void> run(Connection& connection, const char* sql) {
  const int code = connection.run(sql);
  if (code == SQLITE_OK) return {};
  return connection.error(code, Phase::open, "cannot set up");
}

}  // namespace

result<std::string> absolute_path(const std::string& path) {
  if (path == ":memory:") return path;
  if (path.empty() || path.find('\0') != std::string::npos)
    return fail(errc::invalid_argument, "an SQLite store needs the path of a file: sqlite:name.db");
  std::error_code error;
  const fs::path absolute = fs::absolute(path, error);
  if (error)
    return fail(errc::cannot_open, "cannot find the working directory: " + error.message());
  const fs::path directory = fs::weakly_canonical(absolute.parent_path(), error);
  return (error ? absolute : directory / absolute.filename()).string();
}

result<Connection> open_writer(const std::string& path, const SqliteOptions& options) {
  if (sqlite3_libversion_number() < 3037000)
    return fail(errc::unsupported,
                std::string("SQLite ") + sqlite3_libversion() + " is too old: 3.37 is needed");
  const bool in_memory = path == ":memory:";
  if (!in_memory) {
    if (auto place = check_place(path, options.create); !place) return place.error();
    if (auto log = check_log_is_there(path, options.busy_timeout); !log) return log.error();
  }
  const bool create = options.create || in_memory;
  auto connection = Connection::open(path, create, options.busy_timeout);
  if (!connection) return connection;
  const bool full = options.synchronous == SqliteOptions::Synchronous::full;
  if (auto set = run(*connection, full ? "PRAGMA synchronous=FULL" : "PRAGMA synchronous=NORMAL");
      !set)
    return set.error();
  if (!in_memory) {
    // A look at the file first: what is no database is left as it is.
    if (auto tables = connection->integer_of("SELECT count(*) FROM sqlite_master"); !tables)
      return tables.error();
    if (sqlite3_db_readonly(connection->handle(), "main") != 0)
      return connection->error(SQLITE_READONLY, Phase::open, "cannot write to");
    // Somebody else's database is left as it is, its journal mode too.
    if (auto ours = create ? result<void>() : verify_schema(*connection); !ours)
      return ours.error();
    if (auto wal = switch_to_wal(*connection, options.busy_timeout); !wal) return wal.error();
  }
  if (options.pages_max != 0) {
    const auto limit =
        connection->integer_of("PRAGMA max_page_count=" + std::to_string(options.pages_max));
    if (!limit) return limit.error();
  }
  if (auto schema = create ? ensure_schema(*connection) : verify_schema(*connection); !schema)
    return schema.error();
  return connection;
}

result<Connection> open_reader(const std::string& path, const SqliteOptions& options) {
  auto connection = Connection::open(path, false, options.busy_timeout);
  if (!connection) return connection;
  // Checkpoints of two connections at once are what SQLite before 3.51.3 gets wrong (WAL reset).
  if (auto set = run(*connection, "PRAGMA query_only=ON; PRAGMA wal_autocheckpoint=0"); !set)
    return set.error();
  sqlite3_db_config(connection->handle(), SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1, nullptr);
  return connection;
}

result<Durability> durability_of(Connection& connection) {
  const auto mode = connection.text_of("PRAGMA journal_mode");
  if (!mode) return mode.error();
  const auto synchronous = connection.integer_of("PRAGMA synchronous");
  if (!synchronous) return synchronous.error();
  // A rollback journal that is not synced to the end may leave a damaged file behind.
  const bool rolls_back = *mode == "delete" || *mode == "truncate" || *mode == "persist";
  if ((*mode == "wal" || rolls_back) && *synchronous >= 2) return Durability::power;
  return *mode == "wal" && *synchronous == 1 ? Durability::process : Durability::none;
}

}  // namespace idem::sqlite
