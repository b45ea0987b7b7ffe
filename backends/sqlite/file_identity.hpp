// Whether a path still names the file that was opened: SQLite goes on with a file that was removed,
// and what it writes there is gone with the process.
#pragma once

#include <sys/types.h>

#include <optional>
#include <string>

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

}  // namespace idem::sqlite
