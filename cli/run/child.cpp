#include "child.hpp"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <utility>

#include "alarm.hpp"
#include "descriptor.hpp"
#include "descriptors.hpp"
#include "group.hpp"
#include "guard.hpp"
#include "idem/lease_margin.hpp"

namespace idem::cli {

namespace {

// A group that is being ended is looked at this often, beside each death that we hear of.
constexpr Micros kLookEvery = std::chrono::milliseconds(20);

// What the reader has not taken by so long after the end of a command that we ended is left.
constexpr Micros kReaderPatience = std::chrono::milliseconds(500);

// What the new process needs.
struct Birth {
  char* const* argv;
  pid_t parent;
  const Signals& signals;
  Pipe& output;
  int error_output;
  Pipe& leave;    // to begin: a byte
  Pipe& failure;  // of exec: errno
};

// Between fork and exec: async-signal-safe calls only.
[[noreturn]] void become(const Birth& birth) {
  setpgid(0, 0);
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != birth.parent) _exit(127);  // it died before it could be watched
  birth.leave.write.close();
  char word = 0;
  ssize_t got = -1;
  do {
    got = read(birth.leave.read.get(), &word, 1);
  } while (got < 0 && errno == EINTR);
  if (got != 1) _exit(127);
  birth.signals.give_to_command();
  if (isatty(STDIN_FILENO) != 0) {
    const int empty = open("/dev/null", O_RDONLY);
    if (empty >= 0) dup2(empty, STDIN_FILENO);
  }
  dup2(birth.output.write.get(), STDOUT_FILENO);
  if (birth.error_output != STDERR_FILENO) dup2(birth.error_output, STDERR_FILENO);
  keep_only(given_descriptors());
  execvp(birth.argv[0], birth.argv);
  const int error = errno;
  [[maybe_unused]] const ssize_t told = write(birth.failure.write.get(), &error, sizeof error);
  _exit(127);
}

// What the supervising loop holds.
class Supervisor {
 public:
  Supervisor(Signals& signals, const Stopping& stop, const ChildOutput& output)
      : signals_(signals),
        stop_(stop),
        output_(output),
        guard_(clock_, stop.lease ? lease_margin(stop.lease->length) : Micros(0)) {}

  ChildEnd run(const std::vector<std::string>& command);

 private:
  void start(const std::vector<std::string>& command);
  // False: end_ says why it may not begin.
  [[nodiscard]] bool may_begin();
  void watch();
  [[nodiscard]] bool over() const;
  // We end it: its lease was lost, or somebody interrupts.
  [[nodiscard]] bool ending() const { return end_.interruption != 0 || end_.stopped; }
  // Whether output may still come, or is to go on.
  [[nodiscard]] bool flows() const;
  [[nodiscard]] Time safe_until() const {
    return stop_.lease ? stop_.lease->safe_until() : Time::max();
  }
  void look_ahead();
  std::size_t read_output();
  void drain();
  void take_signals();
  void begin_stop();
  void begin_grace();

  Signals& signals_;
  const Stopping& stop_;
  const ChildOutput& output_;
  Clock& clock_ = system_clock();
  ChildEnd end_;
  pid_t pid_ = -1;
  bool exited_ = false;
  bool grace_ = false;  // kill_ is set
  bool killed_ = false;
  bool only_dead_ = false;  // are left of the group, and none of them is ours to reap
  Guard guard_;
  Descriptor pipe_;
  Descriptor stop_event_{eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)};
  Alarm kill_;
  Alarm look_;
};

void Supervisor::start(const std::vector<std::string>& command) {
  std::vector<char*> argv;
  argv.reserve(command.size() + 1);
  for (const std::string& word : command) argv.push_back(const_cast<char*>(word.c_str()));
  argv.push_back(nullptr);
  Pipe output;
  Pipe leave;
  Pipe failure;
  const bool ready = output.write.open() && leave.write.open() && failure.write.open() &&
                     stop_event_.open() && kill_.works() && look_.works();
  // Orphans of the group come to us, else nobody may ever reap them.
  prctl(PR_SET_CHILD_SUBREAPER, 1);
  const pid_t parent = getpid();
  pid_ = ready ? fork() : -1;
  if (pid_ == 0) become({argv.data(), parent, signals_, output, output_.error, leave, failure});
  int error = pid_ < 0 ? errno : 0;
  if (pid_ > 0) {
    setpgid(pid_, pid_);  // here too: whoever comes first
    failure.write.close();
    leave.read.close();
    if (may_begin()) {
      if (write(leave.write.get(), "!", 1) != 1) error = errno;
      end_.started = read(failure.read.get(), &error, sizeof error) == 0 && error == 0;
    }
    if (!end_.started) {
      guard_.dismiss();
      kill(pid_, SIGKILL);
      waitpid(pid_, nullptr, 0);
    }
  }
  if (!end_.started) {
    if (end_.error.empty()) end_.error = std::strerror(error);
    end_.missing = error == ENOENT;
    return;
  }
  pipe_ = std::move(output.read);
}

bool Supervisor::may_begin() {
  if (!guard_.start(pid_, safe_until())) {
    end_.error = std::string("no guard can be started for it: ") + std::strerror(errno);
    return false;
  }
  end_.late = stop_.token.stop_requested() || clock_.now() >= safe_until();
  return !end_.late;
}

// How much there was.
std::size_t Supervisor::read_output() {
  std::array<char, 1 << 16> buffer;
  const ssize_t got = read(pipe_.get(), buffer.data(), buffer.size());
  if (got < 0 && (errno == EINTR || errno == EAGAIN)) return 0;
  if (got <= 0) {
    pipe_.close();
    return 0;
  }
  const std::string_view piece(buffer.data(), static_cast<std::size_t>(got));
  output_.seen(piece);
  if (output_.pass_on != nullptr) output_.pass_on->add(piece);
  return piece.size();
}

// What it wrote before its end and was not read yet, and what its reader takes. Whoever left the
// group may write on: what the pipe holds now is ours.
void Supervisor::drain() {
  pollfd rest{pipe_.get(), POLLIN, 0};
  int held = 0;
  if (pipe_.open()) ioctl(pipe_.get(), FIONREAD, &held);
  for (auto left = static_cast<std::size_t>(held);
       left > 0 && pipe_.open() && poll(&rest, 1, 0) > 0;)
    left -= std::min(left, read_output());
  if (output_.pass_on != nullptr) output_.pass_on->settle(kReaderPatience);
}

bool Supervisor::flows() const {
  return pipe_.open() || (output_.pass_on != nullptr && output_.pass_on->pending());
}

bool Supervisor::over() const {
  if (!exited_) return false;
  if (!ending()) return !flows();
  return group_is_empty(pid_) || only_dead_;
}

void Supervisor::take_signals() {
  while (const int signal = signals_.take()) {
    if (signal == SIGCHLD) continue;
    end_.interruption = signal;
    ask_to_end(pid_, signal);
  }
  int status = 0;
  pid_t pid = 0;
  while ((pid = waitpid(-1, &status, WNOHANG)) > 0) {
    guard_.reaped(pid);
    if (pid != pid_) continue;
    exited_ = true;
    end_.status = WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
  }
}

void Supervisor::begin_stop() {
  eventfd_t count = 0;
  eventfd_read(stop_event_.get(), &count);
  if (std::exchange(end_.stopped, true)) return;
  guard_.tell_asked();
  ask_to_end(pid_, SIGTERM);
  begin_grace();
}

void Supervisor::begin_grace() {
  if (!std::exchange(grace_, true)) kill_.set(stop_.grace);
}

// Tells the guard what is new, and sees to it that we look again in time to tell it the next.
void Supervisor::look_ahead() {
  if (stop_.lease) {
    const Time until = safe_until();
    guard_.tell(until);
    const Micros often = stop_.lease->length / 6;  // it is renewed each third
    const Micros left = until - clock_.now();
    look_.set(left > Micros(0) ? std::min(left, often) : often);
  }
  if (!ending() || !exited_) return;
  begin_grace();
  look_.set(kLookEvery);
}

void Supervisor::watch() {
  const std::stop_callback on_stop(stop_.token, [this] { eventfd_write(stop_event_.get(), 1); });
  Outlet* const reader = output_.pass_on;
  take_signals();
  while (!over()) {
    look_ahead();
    const bool full = reader != nullptr && reader->full();
    std::array<pollfd, 7> waits{{{signals_.descriptor(), POLLIN, 0},
                                 {stop_event_.get(), POLLIN, 0},
                                 {kill_.descriptor(), POLLIN, 0},
                                 {look_.descriptor(), POLLIN, 0},
                                 {guard_.descriptor(), POLLIN, 0},
                                 {full ? -1 : pipe_.get(), POLLIN, 0},
                                 {reader != nullptr ? reader->progress() : -1, POLLIN, 0}}};
    if (poll(waits.data(), waits.size(), -1) < 0) continue;
    if (waits[0].revents != 0) take_signals();
    if (waits[1].revents != 0) begin_stop();
    if (waits[2].revents != 0) {
      kill_.hear();
      killed_ = true;
      kill_group(pid_);
    }
    if (waits[3].revents != 0) {
      look_.hear();
      only_dead_ = killed_ && only_dead_left(pid_);
      take_signals();
    }
    if (waits[4].revents != 0 && guard_.acted()) begin_stop();
    if (waits[5].revents != 0) read_output();
    if (waits[6].revents != 0) reader->hear();
  }
  // It acts before anything ends by it.
  end_.stopped = guard_.acted() || end_.stopped;
}

ChildEnd Supervisor::run(const std::vector<std::string>& command) {
  start(command);
  if (!end_.started) return std::move(end_);
  watch();
  guard_.dismiss();
  drain();
  return std::move(end_);
}

}  // namespace

ChildEnd run_child(const std::vector<std::string>& command, Signals& signals, const Stopping& stop,
                   const ChildOutput& output) {
  return Supervisor(signals, stop, output).run(command);
}

}  // namespace idem::cli
