// Private servers for tests and measurements: a temporary directory, a free port, a process.
//
// A server started here is found by its pid and by nothing else, keeps its files in a directory of
// its own, and does not outlive the process that started it, however that one ends.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "idem/error.hpp"
#include "idem/time.hpp"

namespace idem::testing {

// A new directory under TMPDIR (or /tmp), removed with all it holds when the object goes.
class TempDirectory {
 public:
  [[nodiscard]] static result<TempDirectory> make(std::string_view purpose);
  TempDirectory(TempDirectory&& other) noexcept;
  TempDirectory& operator=(TempDirectory&& other) noexcept;
  TempDirectory(const TempDirectory&) = delete;
  TempDirectory& operator=(const TempDirectory&) = delete;
  ~TempDirectory();

  [[nodiscard]] const std::string& path() const { return path_; }
  [[nodiscard]] std::string operator/(std::string_view name) const;

 private:
  explicit TempDirectory(std::string path) : path_(std::move(path)) {}
  std::string path_;
};

// A loopback TCP port that nobody listens on right now. Two calls may give the same one; a server
// that loses the race for it fails to start, and says so in its log.
[[nodiscard]] result<std::uint16_t> free_port();

// The full path of a program, looked up in PATH and then in /usr/sbin and /usr/local/sbin;
// `package` is named in the error if it is not there.
[[nodiscard]] result<std::string> find_program(std::string_view name, std::string_view package);

// True if somebody accepts connections there. Loopback answers at once.
[[nodiscard]] bool accepts_tcp(std::uint16_t port);
[[nodiscard]] bool accepts_unix(const std::string& path);

// Sends it to whoever accepts there, and gives the first bytes of the answer; "" if nobody does.
[[nodiscard]] std::string ask_unix(const std::string& path, std::string_view request);

// The last lines of a log, for an error's message; "" if there is none.
[[nodiscard]] std::string end_of_log(const std::string& file);

struct ServerCommand {
  std::vector<std::string> argv;  // argv[0]: full path of the program
  std::string directory;          // working directory
  std::string log;                // file that gets stdout and stderr, appended
  std::function<bool()> ready;    // asked every few milliseconds until true
  Micros ready_within = std::chrono::seconds(20);
};

// One server. Thread safe. stop(), kill() and start() may alternate: a restart with the same
// arguments, directory and port.
class ServerProcess {
 public:
  // Starts it and returns when it is ready; unavailable, with the end of the log, if it does not
  // become so.
  [[nodiscard]] static result<std::unique_ptr<ServerProcess>> launch(ServerCommand command);
  ~ServerProcess();  // stop()
  ServerProcess(const ServerProcess&) = delete;
  ServerProcess& operator=(const ServerProcess&) = delete;

  [[nodiscard]] result<void> start();  // nothing to do while it runs
  void stop();                         // SIGTERM, SIGKILL after 10 s; returns when it is gone
  void kill();                         // SIGKILL; returns when it is gone
  void freeze();                       // SIGSTOP: open port, no answer
  void thaw();                         // SIGCONT

  [[nodiscard]] bool running() const;
  [[nodiscard]] pid_t pid() const;  // 0: not running

 private:
  struct State;
  explicit ServerProcess(ServerCommand command);
  ServerCommand command_;
  std::unique_ptr<State> state_;
};

}  // namespace idem::testing
