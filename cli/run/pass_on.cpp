#include "pass_on.hpp"

#include <limits.h>
#include <string.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <utility>

namespace idem::cli {

namespace {

// A terminal is called ready when it takes 256 bytes, a pipe when it takes PIPE_BUF (Linux).
constexpr std::size_t kTerminalBytes = 256;

}  // namespace

PassOn::PassOn(int descriptor)
    : descriptor_(descriptor), at_once_(isatty(descriptor) != 0 ? kTerminalBytes : PIPE_BUF) {}

void PassOn::add(std::string_view bytes) {
  if (error_ != 0) return;
  bytes_.erase(0, std::exchange(written_, 0));
  bytes_ += bytes;
}

void PassOn::write_some() {
  const std::string_view next = left().substr(0, at_once_);
  const ssize_t written = ::write(descriptor_, next.data(), next.size());
  if (written > 0) written_ += static_cast<std::size_t>(written);
  if (written >= 0 || errno == EINTR || errno == EAGAIN) return;
  error_ = errno;
  drop();
}

std::string PassOn::failure() const {
  if (pending()) return "its reader does not go on reading";
  return error_ == 0 || error_ == EPIPE ? std::string() : strerror(error_);
}

void PassOn::drop() {
  bytes_.clear();
  written_ = 0;
}

}  // namespace idem::cli
