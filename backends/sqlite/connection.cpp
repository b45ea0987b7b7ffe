#include "connection.hpp"

#include <sys/statvfs.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "idem/clock.hpp"

namespace idem::sqlite {

void Statement::bind(int index, std::int64_t value) {
  bind_error_ |= sqlite3_bind_int64(handle_.get(), index, value);
}

// A null pointer would bind NULL: an empty text has to point somewhere.
void Statement::bind_text(int index, std::string_view text) {
  const int code = sqlite3_bind_text64(handle_.get(), index, text.empty() ? "" : text.data(),
                                       text.size(), SQLITE_STATIC, SQLITE_UTF8);
  if (code != SQLITE_OK) bind_error_ = code;
}

void Statement::bind_blob(int index, std::string_view bytes) {
  const int code = sqlite3_bind_blob64(handle_.get(), index, bytes.empty() ? "" : bytes.data(),
                                       bytes.size(), SQLITE_STATIC);
  if (code != SQLITE_OK) bind_error_ = code;
}

void Statement::bind_null(int index) { bind_error_ |= sqlite3_bind_null(handle_.get(), index); }

int Statement::step() {
  if (bind_error_ != SQLITE_OK) return bind_error_;
  return sqlite3_step(handle_.get());
}

int Statement::run() {
  int code = SQLITE_ROW;
  while (code == SQLITE_ROW) code = step();
  reset();
  return code;
}

void Statement::reset() {
  bind_error_ = SQLITE_OK;
  sqlite3_reset(handle_.get());
}

bool Statement::is_null(int column) const {
  return sqlite3_column_type(handle_.get(), column) == SQLITE_NULL;
}

std::int64_t Statement::integer(int column) const {
  return sqlite3_column_int64(handle_.get(), column);
}

std::string_view Statement::text(int column) const {
  const auto* bytes = reinterpret_cast<const char*>(sqlite3_column_text(handle_.get(), column));
  const auto size = static_cast<std::size_t>(sqlite3_column_bytes(handle_.get(), column));
  return bytes == nullptr ? std::string_view() : std::string_view(bytes, size);
}

std::string_view Statement::blob(int column) const {
  const auto* bytes = static_cast<const char*>(sqlite3_column_blob(handle_.get(), column));
  const auto size = static_cast<std::size_t>(sqlite3_column_bytes(handle_.get(), column));
  return bytes == nullptr ? std::string_view() : std::string_view(bytes, size);
}

result<Connection> Connection::open(const std::string& path, bool create, Micros busy_timeout) {
  Connection connection;
  connection.path_ = path;
  connection.wait_ = std::make_unique<BusyWait>(BusyWait{busy_timeout, Time{}, Time{}});
  const int flags = SQLITE_OPEN_READWRITE | (create ? SQLITE_OPEN_CREATE : 0) |
                    SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_EXRESCODE;
  sqlite3* handle = nullptr;
  const int code = sqlite3_open_v2(path.c_str(), &handle, flags, nullptr);
  connection.handle_.reset(handle);
  if (code != SQLITE_OK) return connection.error(code, Phase::open, "cannot open");
  sqlite3_busy_handler(handle, &Connection::on_busy, connection.wait_.get());
  return connection;
}

Connection Connection::borrow(sqlite3* handle) {
  Connection connection;
  const char* const path = sqlite3_db_filename(handle, "main");
  connection.path_ = path == nullptr || *path == '\0' ? ":memory:" : path;
  connection.wait_ = std::make_unique<BusyWait>();
  connection.handle_ = {handle, CloseConnection{false}};
  return connection;
}

void Connection::wait_until(Time deadline) { wait_->deadline = deadline; }

// SQLite's own handler pauses for up to 100 ms: beside a busy process it would hardly ever find the
// database free. Short pauses find the gap between two transactions.
int Connection::on_busy(void* wait, int count) {
  auto& busy = *static_cast<BusyWait*>(wait);
  const Time now = system_clock().now();
  if (count == 0) busy.until = busy.deadline == Time{} ? now + busy.timeout : busy.deadline;
  if (now >= busy.until) return 0;
  constexpr Micros kPauses[] = {Micros(200), Micros(500), Micros(1000), Micros(2000)};
  const Micros pause = std::min(kPauses[std::min(count, 3)], busy.until - now);
  sqlite3_vfs* const system = sqlite3_vfs_find(nullptr);
  system->xSleep(system, static_cast<int>(pause.count()));
  return 1;
}

result<Statement> Connection::prepare(std::string_view sql) {
  sqlite3_stmt* handle = nullptr;
  const int code = sqlite3_prepare_v3(handle_.get(), sql.data(), static_cast<int>(sql.size()),
                                      SQLITE_PREPARE_PERSISTENT, &handle, nullptr);
  if (code != SQLITE_OK) return error(code, Phase::open, "cannot prepare a statement");
  Statement statement;
  statement.handle_.reset(handle);
  return statement;
}

int Connection::run(const char* sql) {
  return sqlite3_exec(handle_.get(), sql, nullptr, nullptr, nullptr);
}

result<std::string> Connection::text_of(std::string_view sql) {
  auto statement = prepare(sql);
  if (!statement) return statement.error();
  const int code = statement->step();
  if (code == SQLITE_ROW) return std::string(statement->text(0));
  if (code == SQLITE_DONE) return std::string();
  return error(code, Phase::open, "cannot read");
}

result<std::int64_t> Connection::integer_of(std::string_view sql) {
  auto statement = prepare(sql);
  if (!statement) return statement.error();
  const int code = statement->step();
  if (code == SQLITE_ROW) return statement->integer(0);
  if (code == SQLITE_DONE) return std::int64_t{0};
  return error(code, Phase::open, "cannot read");
}

void Connection::roll_back() {
  if (in_transaction()) static_cast<void>(run("ROLLBACK"));
}

namespace {

struct Meaning {
  errc code;
  const char* remedy;
};

Meaning meaning_of(int code, Phase phase) {
  const bool opening = phase == Phase::open;
  switch (code & 0xff) {
    case SQLITE_BUSY:
    case SQLITE_LOCKED:
      return {errc::busy, "another writer held the database for longer than busy_timeout"};
    case SQLITE_FULL:
      return {errc::capacity, "make room on the disk (or raise max_page_count) and repeat"};
    case SQLITE_READONLY:
      return {errc::read_only, "make the file and its directory writable for this user"};
    case SQLITE_TOOBIG:
      return {errc::too_large, "store a smaller result"};
    case SQLITE_NOTADB:
      if (opening) return {errc::cannot_open, "name another file: this one is left as it is"};
      return {errc::corrupt, "restore the file from a backup"};
    case SQLITE_CORRUPT:
      return {errc::corrupt, "check the disk, then restore or .recover the file; it is kept as is"};
    case SQLITE_PROTOCOL:
      return {opening ? errc::cannot_open : errc::unavailable,
              "the file system's locks do not work: use a local one, not a network share"};
    case SQLITE_PERM:
    case SQLITE_AUTH:
      return {errc::denied, "give this user the right to read and write the file"};
    case SQLITE_CANTOPEN:
      return {opening ? errc::cannot_open : errc::unavailable,
              "check that the directory exists and is writable, and the limit of open files"};
    case SQLITE_MISUSE:
    case SQLITE_RANGE:
    case SQLITE_CONSTRAINT:
    case SQLITE_MISMATCH:
      return {errc::internal, "please report it"};
    default:
      return {opening ? errc::cannot_open : errc::unavailable, "nothing was written"};
  }
}

// No block or no inode left where the file is. (A file system that has neither, as /proc, is not
// full.)
bool is_full(const std::string& path) {
  struct statvfs system {};
  const std::string directory = path.substr(0, path.rfind('/') + 1);
  if (statvfs(directory.c_str(), &system) != 0) return false;
  if (system.f_blocks == 0) return false;
  return system.f_bavail == 0 || (system.f_files != 0 && system.f_favail == 0);
}

// SQLite tells most writes to a full disk from other faults (SQLITE_FULL), but not those that make
// or lengthen the shared memory file (SQLITE_IOERR_SHMSIZE), nor a file that cannot be made; and of
// the latter it forgets the system's own error by trying to read it instead.
bool is_out_of_space(int code, int system_error, const std::string& path) {
  const int kind = code & 0xff;
  if (kind != SQLITE_IOERR && kind != SQLITE_CANTOPEN) return false;
  return system_error == ENOSPC || system_error == EDQUOT || system_error == EFBIG || is_full(path);
}

}  // namespace

Error Connection::error(int code, Phase phase, std::string_view doing) const {
  // The handle's own text is about its last call, which need not be the one that gave the code.
  const bool own = handle_ && sqlite3_extended_errcode(handle_.get()) == code;
  const int system_error = own ? sqlite3_system_errno(handle_.get()) : 0;
  const bool out_of_space = is_out_of_space(code, system_error, path_);
  Meaning meaning = meaning_of(out_of_space ? SQLITE_FULL : code, phase);
  const int kind = code & 0xff;
  const bool surely_undone = kind == SQLITE_FULL || kind == SQLITE_BUSY || kind == SQLITE_READONLY;
  if (phase == Phase::commit && !surely_undone)
    meaning = {errc::unknown, "it may have been applied: repeat with the same owner"};
  std::string message(doing);
  message += " " + path_ + ": ";
  message += own ? sqlite3_errmsg(handle_.get()) : sqlite3_errstr(code);
  message += " (SQLite " + std::to_string(code) + (out_of_space ? ": no space left); " : "); ");
  message += meaning.remedy;
  return fail(meaning.code, std::move(message));
}

}  // namespace idem::sqlite
