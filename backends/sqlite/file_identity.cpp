#include "file_identity.hpp"

#include <sys/stat.h>

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

}  // namespace idem::sqlite
