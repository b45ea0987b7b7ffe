// Bytes on their way to a descriptor whose reader may be slow or gone: nothing here blocks, so that
// whoever supervises a command never waits for a reader.
//
// Not thread safe.
#pragma once

#include <poll.h>

#include <string>
#include <string_view>

namespace idem::cli {

class PassOn {
 public:
  explicit PassOn(int descriptor);
  void add(std::string_view bytes);
  // Whether something is still to be written: then poll() for waits() and write_some().
  [[nodiscard]] bool pending() const { return !left().empty(); }
  // More than this waits: whoever makes the bytes should wait, too.
  [[nodiscard]] bool full() const { return left().size() >= kEnough; }
  // A descriptor that poll() skips, if nothing is pending.
  [[nodiscard]] pollfd waits() const { return {pending() ? descriptor_ : -1, POLLOUT, 0}; }
  // To be called when poll() said that waits() is ready, or in error.
  void write_some();
  // Why not everything got through; "" if it did. A reader that goes away (EPIPE) wants no more: no
  // failure.
  [[nodiscard]] std::string failure() const;

 private:
  static constexpr std::size_t kEnough = std::size_t{1} << 16;
  [[nodiscard]] std::string_view left() const { return std::string_view(bytes_).substr(written_); }
  void drop();

  const int descriptor_;
  const std::size_t at_once_;  // so many a descriptor takes that poll() calls ready
  std::string bytes_;
  std::size_t written_ = 0;
  int error_ = 0;
};

}  // namespace idem::cli
