#include "child.hpp"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/timerfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <string_view>
#include <utility>

#include "descriptors.hpp"

namespace idem::cli {

namespace {

constexpr std::array kEnding = {SIGINT, SIGTERM, SIGHUP};

sigset_t our_signals() {
  sigset_t set;
  sigemptyset(&set);
  for (const int number : kEnding) {
    struct sigaction held {};
    sigaction(number, nullptr, &held);
    // What our caller had us ignore (nohup) stays ignored, here and in the command.
    if (held.sa_handler != SIG_IGN) sigaddset(&set, number);
  }
  sigaddset(&set, SIGCHLD);
  return set;
}

class Descriptor {
 public:
  explicit Descriptor(int fd = -1) : fd_(fd) {}
  Descriptor(Descriptor&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  Descriptor& operator=(Descriptor&& other) noexcept {
    std::swap(fd_, other.fd_);
    return *this;
  }
  ~Descriptor() { close(); }
  [[nodiscard]] int get() const { return fd_; }
  [[nodiscard]] bool open() const { return fd_ >= 0; }
  void close() {
    if (fd_ >= 0) ::close(fd_);
    fd_ = -1;
  }

 private:
  int fd_;
};

struct Pipe {
  Descriptor read;
  Descriptor write;

  Pipe() {
    int ends[2] = {-1, -1};
    if (::pipe2(ends, O_CLOEXEC) == 0) {
      read = Descriptor(ends[0]);
      write = Descriptor(ends[1]);
    }
  }
};

// Between fork and exec: async-signal-safe calls only.
[[noreturn]] void become(char* const* argv, pid_t parent, int output, int error_output,
                         int failure) {
  setpgid(0, 0);
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != parent) _exit(127);  // it died before it could be watched
  sigset_t none;
  sigemptyset(&none);
  sigprocmask(SIG_SETMASK, &none, nullptr);
  signal(SIGPIPE, SIG_DFL);
  signal(SIGTSTP, SIG_DFL);
  if (isatty(STDIN_FILENO) != 0) {
    const int empty = open("/dev/null", O_RDONLY);
    if (empty >= 0) dup2(empty, STDIN_FILENO);
  }
  dup2(output, STDOUT_FILENO);
  if (error_output != STDERR_FILENO) dup2(error_output, STDERR_FILENO);
  keep_only(given_descriptors());
  execvp(argv[0], argv);
  const int error = errno;
  [[maybe_unused]] const ssize_t told = write(failure, &error, sizeof error);
  _exit(127);
}

// A process that does nothing but outlive us: when `alive` ends without a word, we were killed, and
// the command's group is ended. Death signals alone reach the command itself, not its children.
pid_t start_guard(Pipe& alive, pid_t group) {
  const pid_t guard = fork();
  if (guard != 0) return guard;
  setsid();  // not hit by what hits our group
  const int last = static_cast<int>(sysconf(_SC_OPEN_MAX));
  const int keep = alive.read.get();
  for (int fd = 0; fd < std::min(last, 4096); ++fd)
    if (fd != keep) close(fd);
  char word = 0;
  ssize_t got = -1;
  do {
    got = read(keep, &word, 1);
  } while (got < 0 && errno == EINTR);
  if (got == 0) kill(-group, SIGKILL);
  _exit(0);
}

// What the supervising loop holds.
class Supervisor {
 public:
  Supervisor(Signals& signals, const Stopping& stop, const ChildOutput& output)
      : signals_(signals), stop_(stop), output_(output) {}

  ChildEnd run(const std::vector<std::string>& command);

 private:
  void start(const std::vector<std::string>& command);
  void watch();
  // Whether output may still come, or is to go on.
  [[nodiscard]] bool flows() const;
  void read_output();
  void drain();
  void take_signals();
  void begin_stop();
  void end_grace();

  Signals& signals_;
  const Stopping& stop_;
  const ChildOutput& output_;
  ChildEnd end_;
  pid_t pid_ = -1;
  bool exited_ = false;
  bool killed_ = false;  // who still holds its output has left its group
  Descriptor pipe_;
  Descriptor stop_event_{eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)};
  Descriptor kill_timer_{timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK)};
};

void Supervisor::start(const std::vector<std::string>& command) {
  std::vector<char*> argv;
  argv.reserve(command.size() + 1);
  for (const std::string& word : command) argv.push_back(const_cast<char*>(word.c_str()));
  argv.push_back(nullptr);
  Pipe output;
  Pipe failure;
  const pid_t parent = getpid();
  pid_ = output.write.open() && failure.write.open() ? fork() : -1;
  if (pid_ == 0)
    become(argv.data(), parent, output.write.get(), output_.error, failure.write.get());
  int error = errno;
  if (pid_ > 0) {
    setpgid(pid_, pid_);  // here too: whoever comes first
    failure.write.close();
    const ssize_t got = read(failure.read.get(), &error, sizeof error);
    end_.started = got == 0;
    if (!end_.started) waitpid(pid_, nullptr, 0);
  }
  if (!end_.started) {
    end_.error = std::strerror(error);
    end_.missing = error == ENOENT;
    return;
  }
  pipe_ = std::move(output.read);
}

void Supervisor::read_output() {
  std::array<char, 1 << 16> buffer;
  const ssize_t got = read(pipe_.get(), buffer.data(), buffer.size());
  if (got < 0 && (errno == EINTR || errno == EAGAIN)) return;
  if (got <= 0) {
    pipe_.close();
    return;
  }
  const std::string_view piece(buffer.data(), static_cast<std::size_t>(got));
  output_.seen(piece);
  if (output_.pass_on != nullptr) output_.pass_on->add(piece);
}

// What it wrote before its end and was not read yet, and what its reader takes without delay.
void Supervisor::drain() {
  pollfd rest{pipe_.get(), POLLIN, 0};
  while (pipe_.open() && poll(&rest, 1, 0) > 0) read_output();
  while (output_.pass_on != nullptr && output_.pass_on->pending()) {
    pollfd reader = output_.pass_on->waits();
    if (poll(&reader, 1, 0) <= 0) break;
    output_.pass_on->write_some();
  }
}

bool Supervisor::flows() const {
  // Interrupted or killed, the command's end is enough.
  if (end_.interruption != 0 || killed_) return false;
  return pipe_.open() || (output_.pass_on != nullptr && output_.pass_on->pending());
}

void Supervisor::take_signals() {
  while (const int signal = signals_.take()) {
    if (signal == SIGCHLD) continue;
    end_.interruption = signal;
    kill(-pid_, signal);
  }
  int status = 0;
  if (exited_ || waitpid(pid_, &status, WNOHANG) != pid_) return;
  exited_ = true;
  end_.status = WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

void Supervisor::begin_stop() {
  std::uint64_t count = 0;
  [[maybe_unused]] const ssize_t got = read(stop_event_.get(), &count, sizeof count);
  end_.stopped = true;
  kill(-pid_, SIGTERM);
  // Zero would disarm the timer.
  const auto whole = std::chrono::floor<std::chrono::seconds>(std::max(stop_.grace, Micros(1)));
  itimerspec grace{};
  grace.it_value.tv_sec = whole.count();
  grace.it_value.tv_nsec =
      std::chrono::nanoseconds(std::max(stop_.grace, Micros(1)) - whole).count();
  timerfd_settime(kill_timer_.get(), 0, &grace, nullptr);
}

void Supervisor::watch() {
  const std::stop_callback on_stop(stop_.token, [this] { eventfd_write(stop_event_.get(), 1); });
  constexpr pollfd kSkipped{-1, 0, 0};
  take_signals();
  while (!exited_ || flows()) {
    PassOn* const reader = output_.pass_on;
    const bool full = reader != nullptr && reader->full();
    std::array<pollfd, 5> waits{{{signals_.descriptor(), POLLIN, 0},
                                 {stop_event_.get(), POLLIN, 0},
                                 {kill_timer_.get(), POLLIN, 0},
                                 {full ? -1 : pipe_.get(), POLLIN, 0},
                                 reader != nullptr ? reader->waits() : kSkipped}};
    if (poll(waits.data(), waits.size(), -1) < 0 && errno != EINTR) break;
    if (waits[0].revents != 0) take_signals();
    if (waits[1].revents != 0) begin_stop();
    if (waits[2].revents != 0) end_grace();
    if (waits[3].revents != 0) read_output();
    if (waits[4].revents != 0) reader->write_some();
  }
  drain();
}

void Supervisor::end_grace() {
  std::uint64_t count = 0;
  [[maybe_unused]] const ssize_t got = read(kill_timer_.get(), &count, sizeof count);
  killed_ = true;
  kill(-pid_, SIGKILL);
}

ChildEnd Supervisor::run(const std::vector<std::string>& command) {
  start(command);
  if (!end_.started) return std::move(end_);
  Pipe alive;
  const pid_t guard = start_guard(alive, pid_);
  alive.read.close();
  watch();
  const char word = '.';
  [[maybe_unused]] const ssize_t told = write(alive.write.get(), &word, 1);
  if (guard > 0) waitpid(guard, nullptr, 0);
  return std::move(end_);
}

}  // namespace

Signals::Signals() {
  const sigset_t set = our_signals();
  pthread_sigmask(SIG_BLOCK, &set, nullptr);
  descriptor_ = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
  signal(SIGPIPE, SIG_IGN);  // a reader that went away does not unmake the result
  signal(SIGTSTP, SIG_IGN);  // stopping us would stop the heartbeat and not the command
}

Signals::~Signals() { ::close(descriptor_); }

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

ChildEnd run_child(const std::vector<std::string>& command, Signals& signals, const Stopping& stop,
                   const ChildOutput& output) {
  return Supervisor(signals, stop, output).run(command);
}

}  // namespace idem::cli
