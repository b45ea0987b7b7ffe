#include "idem/testing/server_process.hpp"

#include <fcntl.h>
#include <netinet/in.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <condition_variable>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <mutex>
#include <optional>
#include <sstream>
#include <system_error>
#include <thread>
#include <utility>

#include "idem/clock.hpp"

namespace idem::testing {
namespace {

constexpr auto kStopGrace = std::chrono::seconds(10);
constexpr Micros kPollPause = std::chrono::milliseconds(3);

std::string text_of(int error) { return std::generic_category().message(error); }

class Socket {
 public:
  explicit Socket(int family) : fd_(::socket(family, SOCK_STREAM | SOCK_CLOEXEC, 0)) {}
  ~Socket() {
    if (fd_ >= 0) ::close(fd_);
  }
  Socket(const Socket&) = delete;
  Socket& operator=(const Socket&) = delete;
  [[nodiscard]] int fd() const { return fd_; }

 private:
  int fd_;
};

sockaddr_in loopback(std::uint16_t port) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(port);
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  return address;
}

template <class Address>
const sockaddr* generic(const Address& address) {
  return reinterpret_cast<const sockaddr*>(&address);
}

bool connects(const Socket& socket, const std::string& path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (path.size() >= sizeof(address.sun_path)) return false;
  std::memcpy(address.sun_path, path.c_str(), path.size() + 1);
  return ::connect(socket.fd(), generic(address), sizeof(address)) == 0;
}

}  // namespace

result<TempDirectory> TempDirectory::make(std::string_view purpose) {
  const char* base = std::getenv("TMPDIR");
  std::string path = base != nullptr && *base != '\0' ? base : "/tmp";
  path += "/idem-" + std::string(purpose) + "-XXXXXX";
  if (::mkdtemp(path.data()) == nullptr) {
    return idem::fail(errc::cannot_open, "cannot make " + path + ": " + text_of(errno));
  }
  ::chmod(path.c_str(), 0755);  // servers that give up root must still get in
  return TempDirectory(std::move(path));
}

TempDirectory::TempDirectory(TempDirectory&& other) noexcept
    : path_(std::exchange(other.path_, {})) {}

TempDirectory& TempDirectory::operator=(TempDirectory&& other) noexcept {
  std::swap(path_, other.path_);
  return *this;
}

TempDirectory::~TempDirectory() {
  std::error_code ignored;
  if (!path_.empty()) std::filesystem::remove_all(path_, ignored);
}

std::string TempDirectory::operator/(std::string_view name) const {
  return path_ + "/" + std::string(name);
}

result<std::uint16_t> free_port() {
  const Socket socket(AF_INET);
  sockaddr_in address = loopback(0);
  socklen_t size = sizeof(address);
  if (::bind(socket.fd(), generic(address), size) != 0 ||
      ::getsockname(socket.fd(), reinterpret_cast<sockaddr*>(&address), &size) != 0) {
    return idem::fail(errc::unavailable, "no free loopback port: " + text_of(errno));
  }
  return static_cast<std::uint16_t>(ntohs(address.sin_port));
}

result<std::string> find_program(std::string_view name, std::string_view package) {
  // Where servers are, beside where commands are.
  const char* path = std::getenv("PATH");
  std::istringstream directories(std::string(path != nullptr ? path : "/usr/local/bin:/usr/bin") +
                                 ":/usr/local/sbin:/usr/sbin");
  for (std::string directory; std::getline(directories, directory, ':');) {
    const std::string file = directory + "/" + std::string(name);
    if (!directory.empty() && ::access(file.c_str(), X_OK) == 0) return file;
  }
  return idem::fail(errc::unavailable, std::string(name) + " is not installed; apt-get install " +
                                           std::string(package));
}

bool accepts_tcp(std::uint16_t port) {
  const Socket socket(AF_INET);
  const sockaddr_in address = loopback(port);
  return ::connect(socket.fd(), generic(address), sizeof(address)) == 0;
}

bool accepts_unix(const std::string& path) { return connects(Socket(AF_UNIX), path); }

std::string ask_unix(const std::string& path, std::string_view request) {
  const Socket socket(AF_UNIX);
  if (!connects(socket, path)) return {};
  if (::send(socket.fd(), request.data(), request.size(), MSG_NOSIGNAL) < 0) return {};
  char answer[128];
  const ssize_t got = ::recv(socket.fd(), answer, sizeof(answer), 0);
  return got > 0 ? std::string(answer, static_cast<std::size_t>(got)) : std::string();
}

std::string end_of_log(const std::string& file) {
  constexpr std::size_t kBytes = 2000;
  std::ifstream in(file);
  std::ostringstream text;
  text << in.rdbuf();
  const std::string all = text.str();
  return all.size() <= kBytes ? all : all.substr(all.size() - kBytes);
}

// The keeper is the thread that forks the server and waits for its end. The server is told to die
// with its parent, and for the kernel the parent is the thread, not the process: the keeper lives
// exactly as long as the server, or until the process ends.
struct ServerProcess::State {
  mutable std::mutex mutex;
  std::condition_variable changed;
  std::mutex lifecycle;  // start, stop and kill one after the other
  std::thread keeper;
  std::optional<pid_t> pid;  // set once forked; 0: could not fork
  bool gone = true;
};

ServerProcess::ServerProcess(ServerCommand command)
    : command_(std::move(command)), state_(std::make_unique<State>()) {}

ServerProcess::~ServerProcess() { stop(); }

result<std::unique_ptr<ServerProcess>> ServerProcess::launch(ServerCommand command) {
  std::unique_ptr<ServerProcess> server(new ServerProcess(std::move(command)));
  if (auto started = server->start(); !started) return started.error();
  return server;
}

namespace {

// Between fork and exec only what is safe after the fork of a program with threads.
pid_t spawn(const ServerCommand& command, const std::vector<char*>& argv) {
  const pid_t parent = ::getpid();
  const pid_t pid = ::fork();
  if (pid != 0) return pid;
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (::getppid() != parent) ::_exit(127);
  ::setpgid(0, 0);  // an interrupt typed at the terminal is for the tests, not for the server
  sigset_t none;
  sigemptyset(&none);
  ::pthread_sigmask(SIG_SETMASK, &none, nullptr);
  const int null = ::open("/dev/null", O_RDONLY);
  const int log = ::open(command.log.c_str(), O_WRONLY | O_CREAT | O_APPEND, 0644);
  if (null < 0 || log < 0 || ::chdir(command.directory.c_str()) != 0) ::_exit(127);
  ::dup2(null, 0);
  ::dup2(log, 1);
  ::dup2(log, 2);
  ::syscall(SYS_close_range, 3U, ~0U, 0U);
  ::execv(argv[0], argv.data());
  ::_exit(127);
}

}  // namespace

result<void> ServerProcess::start() {
  const std::lock_guard one_at_a_time(state_->lifecycle);
  State& state = *state_;
  if (running()) return {};
  if (state.keeper.joinable()) state.keeper.join();
  state.pid.reset();
  state.gone = false;
  state.keeper = std::thread([this, &state] {
    std::vector<char*> argv;
    for (std::string& argument : command_.argv) argv.push_back(argument.data());
    argv.push_back(nullptr);
    const pid_t pid = spawn(command_, argv);
    {
      const std::lock_guard guard(state.mutex);
      state.pid = pid > 0 ? pid : 0;
      state.changed.notify_all();
    }
    // The pid is not reaped before it is forgotten: a signal never meets a stranger.
    siginfo_t info{};
    while (pid > 0 && ::waitid(P_PID, static_cast<id_t>(pid), &info, WEXITED | WNOWAIT) != 0 &&
           errno == EINTR) {
    }
    const std::lock_guard guard(state.mutex);
    if (pid > 0) ::waitpid(pid, nullptr, 0);
    state.pid = 0;
    state.gone = true;
    state.changed.notify_all();
  });
  {
    std::unique_lock lock(state.mutex);
    state.changed.wait(lock, [&] { return state.pid.has_value(); });
  }
  const Time deadline = system_clock().now() + command_.ready_within;
  while (running() && system_clock().now() < deadline) {
    if (command_.ready()) return {};
    system_clock().pause(kPollPause);
  }
  const bool died = !running();
  {
    std::unique_lock lock(state.mutex);
    if (state.pid.value_or(0) > 0) ::kill(*state.pid, SIGKILL);
    state.changed.wait(lock, [&] { return state.gone; });
  }
  return idem::fail(errc::unavailable, command_.argv[0] +
                                           (died ? " ended at once: " : " did not get ready: ") +
                                           end_of_log(command_.log));
}

void ServerProcess::stop() {
  const std::lock_guard one_at_a_time(state_->lifecycle);
  State& state = *state_;
  {
    std::unique_lock lock(state.mutex);
    const auto gone = [&] { return state.gone; };
    if (!gone() && state.pid.value_or(0) > 0) {
      ::kill(*state.pid, SIGTERM);
      ::kill(*state.pid, SIGCONT);
      if (!state.changed.wait_for(lock, kStopGrace, gone)) ::kill(*state.pid, SIGKILL);
    }
    state.changed.wait(lock, gone);
  }
  if (state.keeper.joinable()) state.keeper.join();
}

void ServerProcess::kill() {
  const std::lock_guard one_at_a_time(state_->lifecycle);
  State& state = *state_;
  {
    std::unique_lock lock(state.mutex);
    if (state.pid.value_or(0) > 0) ::kill(*state.pid, SIGKILL);
    state.changed.wait(lock, [&] { return state.gone; });
  }
  if (state.keeper.joinable()) state.keeper.join();
}

void ServerProcess::freeze() {
  const std::lock_guard guard(state_->mutex);
  if (state_->pid.value_or(0) > 0) ::kill(*state_->pid, SIGSTOP);
}

void ServerProcess::thaw() {
  const std::lock_guard guard(state_->mutex);
  if (state_->pid.value_or(0) > 0) ::kill(*state_->pid, SIGCONT);
}

bool ServerProcess::running() const { return pid() != 0; }

pid_t ServerProcess::pid() const {
  const std::lock_guard guard(state_->mutex);
  return state_->pid.value_or(0);
}

}  // namespace idem::testing
