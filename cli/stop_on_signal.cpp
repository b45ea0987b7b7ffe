#include "stop_on_signal.hpp"

#include <signal.h>

namespace idem::cli {
namespace {

std::atomic<bool> stop_requested{false};
std::atomic<int> stop_signal{SIGINT};
static_assert(std::atomic<bool>::is_always_lock_free && std::atomic<int>::is_always_lock_free,
              "set from a signal handler");

void request_stop(int signal) {
  stop_signal.store(signal);
  stop_requested.store(true);
}

}  // namespace

StopOnSignal::StopOnSignal() {
  stop_requested = false;
  struct sigaction action {};
  action.sa_handler = request_stop;
  action.sa_flags = static_cast<int>(SA_RESETHAND) | SA_RESTART;
  sigaction(SIGINT, &action, nullptr);
  sigaction(SIGTERM, &action, nullptr);
}

StopOnSignal::~StopOnSignal() {
  signal(SIGINT, SIG_DFL);
  signal(SIGTERM, SIG_DFL);
}

const std::atomic<bool>& StopOnSignal::flag() const { return stop_requested; }

ExitCode StopOnSignal::exit_code() {
  return stop_signal.load() == SIGTERM ? ExitCode::terminated : ExitCode::interrupted;
}

}  // namespace idem::cli
