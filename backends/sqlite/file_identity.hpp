// Whether a path still names the file that was opened: SQLite goes on with a file that was removed,
// and what it writes there is gone with the process. The log (-wal) and its index (-shm) count like
// the database: while any connection is open neither is made anew or removed by SQLite.
#pragma once

#include <sys/types.h>

#include <optional>
#include <string>
#include <vector>

#include "connection.hpp"
#include "idem/error.hpp"

namespace idem::sqlite {

class FileIdentity {
 public:
  FileIdentity() = default;  // of a private database: always there
  // What `path` names now.
  [[nodiscard]] static result<FileIdentity> of(const std::string& path);

  // unavailable, if `path` names another file by now or none. One system call.
  [[nodiscard]] std::optional<Error> trouble() const;

 private:
  std::string path_;
  dev_t device_ = 0;
  ino_t number_ = 0;
};

// The files that SQLite keeps of one database.
class FilesIdentity {
 public:
  FilesIdentity() = default;  // of a private database: always there
  // Of the database at `path` and the log that `writer`, which has read from it, holds open.
  [[nodiscard]] static result<FilesIdentity> of(const std::string& path, const Connection& writer);

  // As FileIdentity::trouble(), for any of them. Three system calls, about 4 us.
  [[nodiscard]] std::optional<Error> trouble() const;

 private:
  std::vector<FileIdentity> files_;
};

// Refuses to open `path` if other connections have a log of it open that its name no longer leads
// to: their records are in it, and every key would look free. Costs one more connection, where
// there is no log, as after a clean end; else one system call.
[[nodiscard]] result<void> check_log_is_there(const std::string& path, Micros busy_timeout);

}  // namespace idem::sqlite
