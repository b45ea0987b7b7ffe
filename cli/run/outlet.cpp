#include "outlet.hpp"

#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <condition_variable>
#include <mutex>

#include "descriptor.hpp"

namespace idem::cli {

namespace {

constexpr std::size_t kEnough = std::size_t{1} << 16;

// Whole or not at all among other writers of the same pipe, and progress is seen piece by piece.
constexpr std::size_t kPiece = PIPE_BUF;

// Bytes written, or -errno.
ssize_t write_piece(int descriptor, std::string_view piece) {
  while (true) {
    const ssize_t written = ::write(descriptor, piece.data(), piece.size());
    if (written >= 0) return written;
    if (errno != EAGAIN && errno != EINTR) return -errno;
    // Somebody made it non-blocking.
    pollfd ready{descriptor, POLLOUT, 0};
    if (errno == EAGAIN) poll(&ready, 1, -1);
  }
}

}  // namespace

struct Outlet::State {
  explicit State(int to) : descriptor(to) {}

  const int descriptor;
  const Descriptor progress{eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)};
  mutable std::mutex mutex;  // guards what follows
  std::condition_variable more;
  std::condition_variable written;
  std::string bytes;
  std::size_t under_way = 0;  // taken out of `bytes`, not yet written
  int error = 0;
  bool closing = false;

  [[nodiscard]] std::size_t left() const { return bytes.size() + under_way; }
};

Outlet::Outlet(int descriptor) : state_(std::make_shared<State>(descriptor)) {
  // Signals are for the main thread.
  sigset_t all;
  sigset_t before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  try {
    thread_ = std::thread([state = state_] { write_all(state); });
  } catch (...) {
    pthread_sigmask(SIG_SETMASK, &before, nullptr);
    throw;
  }
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

Outlet::~Outlet() {
  bool writes = false;
  {
    const std::lock_guard guard(state_->mutex);
    state_->closing = true;
    writes = state_->left() != 0;
  }
  state_->more.notify_all();
  if (writes) {
    thread_.detach();
  } else {
    thread_.join();
  }
}

void Outlet::write_all(const std::shared_ptr<State>& state) {
  std::string taken;  // it and `bytes` change places, and keep their memory
  std::unique_lock lock(state->mutex);
  while (true) {
    state->more.wait(lock, [&] { return state->closing || !state->bytes.empty(); });
    taken.clear();
    taken.swap(state->bytes);
    state->under_way = taken.size();
    while (state->under_way != 0 && !state->closing) {
      const std::size_t from = taken.size() - state->under_way;
      lock.unlock();
      const ssize_t done =
          write_piece(state->descriptor, std::string_view(taken).substr(from, kPiece));
      lock.lock();
      const bool was_full = state->left() >= kEnough;
      if (done < 0) {
        state->error = static_cast<int>(-done);
        state->bytes.clear();
        state->under_way = 0;
      } else {
        state->under_way -= static_cast<std::size_t>(done);
      }
      if (state->left() == 0 || (was_full && state->left() < kEnough))
        eventfd_write(state->progress.get(), 1);
      if (state->left() == 0) state->written.notify_all();
    }
    if (state->closing) return;
  }
}

void Outlet::add(std::string_view bytes) {
  {
    const std::lock_guard guard(state_->mutex);
    if (state_->error != 0) return;
    state_->bytes += bytes;
  }
  state_->more.notify_one();
}

bool Outlet::pending() const {
  const std::lock_guard guard(state_->mutex);
  return state_->left() != 0;
}

bool Outlet::full() const {
  const std::lock_guard guard(state_->mutex);
  return state_->left() >= kEnough;
}

int Outlet::progress() const { return state_->progress.get(); }

void Outlet::hear() {
  eventfd_t count = 0;
  eventfd_read(state_->progress.get(), &count);
}

void Outlet::settle(Micros patience) {
  std::unique_lock lock(state_->mutex);
  state_->written.wait_for(lock, patience, [&] { return state_->left() == 0; });
}

void Outlet::finish() {
  std::unique_lock lock(state_->mutex);
  state_->written.wait(lock, [&] { return state_->left() == 0; });
}

std::string Outlet::failure() const {
  const std::lock_guard guard(state_->mutex);
  if (state_->left() != 0) return "its reader does not go on reading";
  return state_->error == 0 || state_->error == EPIPE ? std::string() : strerror(state_->error);
}

}  // namespace idem::cli
