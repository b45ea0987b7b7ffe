// Bytes on their way to a descriptor whose reader may be slow or gone. A thread writes them:
// nothing here blocks, so that whoever supervises a command never waits for a reader. (poll() does
// not promise that a write would not block: another process may fill the same pipe in between; and
// O_NONBLOCK would hold for everyone who shares it.)
//
// To be used by one thread.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <thread>

#include "idem/time.hpp"

namespace idem::cli {

class Outlet {
 public:
  // Borrows the descriptor. Throws std::system_error if there can be no thread.
  explicit Outlet(int descriptor);
  Outlet(const Outlet&) = delete;
  Outlet& operator=(const Outlet&) = delete;
  // What is still pending is dropped. A write that blocks is left behind.
  ~Outlet();

  void add(std::string_view bytes);
  // Whether something is still to be written.
  [[nodiscard]] bool pending() const;
  // Enough waits: whoever makes the bytes should wait, too.
  [[nodiscard]] bool full() const;
  // Readable once it is no longer full, or nothing is pending any more, until hear().
  [[nodiscard]] int progress() const;
  void hear();
  // Blocks until nothing is pending, but no longer than `patience`.
  void settle(Micros patience);
  // Blocks until nothing is pending.
  void finish();
  // Why not everything got through; "" if it did. A reader that goes away (EPIPE) wants no more: no
  // failure.
  [[nodiscard]] std::string failure() const;

 private:
  struct State;
  static void write_all(const std::shared_ptr<State>& state);

  std::shared_ptr<State> state_;  // shared with the thread, which may outlive us
  std::thread thread_;
};

}  // namespace idem::cli
