#include "signals.hpp"

#include <sys/signalfd.h>
#include <unistd.h>

#include <utility>

namespace idem::cli {

namespace {

sigset_t taken_signals() {
  sigset_t set;
  sigemptyset(&set);
  for (const int number : {SIGINT, SIGTERM, SIGHUP}) {
    struct sigaction now {};
    sigaction(number, nullptr, &now);
    if (now.sa_handler != SIG_IGN) sigaddset(&set, number);
  }
  sigaddset(&set, SIGCHLD);
  return set;
}

}  // namespace

Signals::Signals() {
  const sigset_t set = taken_signals();
  pthread_sigmask(SIG_BLOCK, &set, &mask_before_);
  for (Held& held : held_) {
    struct sigaction during {};
    during.sa_handler = held.during;
    sigaction(held.number, &during, &held.before);
  }
  descriptor_ = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
}

Signals::~Signals() {
  give_back();
  ::close(descriptor_);
}

void Signals::give_back() {
  if (std::exchange(given_back_, true)) return;
  for (const Held& held : held_)
    if (held.number != SIGPIPE) sigaction(held.number, &held.before, nullptr);
  pthread_sigmask(SIG_SETMASK, &mask_before_, nullptr);
}

void Signals::give_to_command() const {
  for (const Held& held : held_) sigaction(held.number, &held.before, nullptr);
  sigset_t none;
  sigemptyset(&none);
  sigprocmask(SIG_SETMASK, &none, nullptr);
}

int Signals::take() {
  signalfd_siginfo info{};
  if (::read(descriptor_, &info, sizeof info) != static_cast<ssize_t>(sizeof info)) return 0;
  const int signal = static_cast<int>(info.ssi_signo);
  if (signal != SIGCHLD) interruption_ = signal;
  return signal;
}

int Signals::interruption() {
  while (take() != 0) {
  }
  return interruption_;
}

}  // namespace idem::cli
