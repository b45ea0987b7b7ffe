#include "file_identity.hpp"

#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>

#include "idem/clock.hpp"

namespace idem::sqlite {

result<FileIdentity> FileIdentity::of(const std::string& path) {
  struct stat found {};
  if (stat(path.c_str(), &found) != 0)
    return fail(errc::cannot_open, path + " was removed while it was being opened");
  FileIdentity identity;
  identity.path_ = path;
  identity.device_ = found.st_dev;
  identity.number_ = found.st_ino;
  return identity;
}

std::optional<Error> FileIdentity::trouble() const {
  if (path_.empty()) return std::nullopt;
  struct stat found {};
  if (stat(path_.c_str(), &found) == 0 && found.st_dev == device_ && found.st_ino == number_)
    return std::nullopt;
  return fail(errc::unavailable, path_ +
                                     " was moved, removed or replaced while it was open: put it "
                                     "back, or restart the processes that use it");
}

result<FilesIdentity> FilesIdentity::of(const std::string& path, const Connection& writer) {
  // SQLite names them after the file that a symbolic link leads to.
  const char* const database = sqlite3_db_filename(writer.handle(), "main");
  FilesIdentity all;
  for (const std::string& name :
       {path, std::string(sqlite3_filename_wal(database)), std::string(database) + "-shm"}) {
    auto file = FileIdentity::of(name);
    if (!file) return file.error();
    all.files_.push_back(std::move(*file));
  }
  return all;
}

std::optional<Error> FilesIdentity::trouble() const {
  for (const FileIdentity& file : files_) {
    if (auto trouble = file.trouble()) return trouble;
  }
  return std::nullopt;
}

namespace {

// Whether somebody uses the write-ahead log of the database in `file`: whoever has it open holds a
// shared lock. Asked of the file itself, for a statement would begin a new log. What cannot be read
// or locked is told by the opening.
bool others_use_log(sqlite3_file* file) {
  const sqlite3_io_methods& io = *file->pMethods;
  if (io.xLock(file, SQLITE_LOCK_SHARED) != SQLITE_OK) return false;
  unsigned char version[2] = {};  // for writing and for reading; 2: with a write-ahead log
  const bool with_log = io.xRead(file, version, sizeof version, 18) == SQLITE_OK &&
                        version[0] == 2 && version[1] == 2;
  const bool others = with_log && (io.xLock(file, SQLITE_LOCK_EXCLUSIVE) & 0xff) == SQLITE_BUSY;
  io.xUnlock(file, SQLITE_LOCK_NONE);
  return others;
}

}  // namespace

result<void> check_log_is_there(const std::string& path, Micros busy_timeout) {
  std::error_code error;
  const std::string log = std::filesystem::canonical(path, error).string() + "-wal";
  if (error || access(log.c_str(), F_OK) == 0) return {};
  const auto connection = Connection::open(path, false, busy_timeout);
  if (!connection) return {};
  sqlite3_file* file = nullptr;
  sqlite3_file_control(connection->handle(), "main", SQLITE_FCNTL_FILE_POINTER, &file);
  if (file == nullptr || file->pMethods == nullptr) return {};
  // Somebody who opens or closes it holds the lock, too, for a moment.
  const Time until = system_clock().now() + busy_timeout;
  while (others_use_log(file) && access(log.c_str(), F_OK) != 0) {
    if (system_clock().now() >= until)
      return fail(errc::cannot_open,
                  log +
                      " was moved or removed while other processes use it: put it back, or "
                      "restart them");
    system_clock().pause(std::chrono::milliseconds(1));
  }
  return {};
}

}  // namespace idem::sqlite
