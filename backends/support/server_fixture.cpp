#include "idem/testing/server_fixture.hpp"

#include <fcntl.h>
#include <pwd.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <iterator>

extern char** environ;

namespace idem::testing {
namespace {

// The server refuses to run as root; its package brings a user of its own. The words to put before
// a command that is to run as that user: a change of user inside the server would undo that it ends
// with the process that started it.
result<std::vector<std::string>> as_server_user(const std::string& directory) {
  if (::geteuid() != 0) return std::vector<std::string>();
  const passwd* const user = ::getpwnam("mysql");
  if (user == nullptr || ::chown(directory.c_str(), user->pw_uid, user->pw_gid) != 0)
    return fail(errc::unavailable, "no user 'mysql' to run a server as: install mariadb-server");
  const auto program = find_program("setpriv", "util-linux");
  if (!program) return program.error();
  return std::vector<std::string>{*program, "--reuid=mysql", "--regid=mysql", "--clear-groups",
                                  "--pdeathsig=KILL"};
}

result<void> run_to_end(std::vector<std::string> argv, const std::string& log) {
  std::vector<char*> raw;
  for (std::string& argument : argv) raw.push_back(argument.data());
  raw.push_back(nullptr);
  posix_spawn_file_actions_t files;
  ::posix_spawn_file_actions_init(&files);
  ::posix_spawn_file_actions_addopen(&files, 1, log.c_str(), O_WRONLY | O_CREAT | O_APPEND, 0600);
  ::posix_spawn_file_actions_adddup2(&files, 1, 2);
  pid_t pid = 0;
  const int failed = ::posix_spawn(&pid, raw[0], &files, nullptr, raw.data(), environ);
  ::posix_spawn_file_actions_destroy(&files);
  int status = 0;
  if (failed != 0 || ::waitpid(pid, &status, 0) != pid || status != 0)
    return fail(errc::unavailable, "mariadb-install-db failed: " + end_of_log(log));
  return {};
}

constexpr std::string_view kDatabase = "idem";

}  // namespace

result<std::unique_ptr<ServerFixture>> ServerFixture::prepare(Kind kind) {
  auto directory = TempDirectory::make(kind == Kind::redis ? "redis" : "mysql");
  if (!directory) return directory.error();
  const auto port = free_port();
  if (!port) return port.error();
  return std::unique_ptr<ServerFixture>(new ServerFixture(kind, std::move(*directory), *port));
}

result<void> ServerFixture::launch(ServerCommand command, std::vector<std::string> arguments) {
  std::move(arguments.begin(), arguments.end(), std::back_inserter(command.argv));
  command.directory = directory_.path();
  command.log = directory_ / "log";
  auto process = ServerProcess::launch(std::move(command));
  if (!process) return process.error();
  process_ = std::move(*process);
  return {};
}

result<std::unique_ptr<ServerFixture>> ServerFixture::redis(std::vector<std::string> arguments) {
  const auto program = find_program("redis-server", "redis-server");
  if (!program) return program.error();
  auto made = prepare(Kind::redis);
  if (!made) return made.error();
  ServerFixture& server = **made;
  ServerCommand command;
  command.argv = {*program,
                  "--port",
                  std::to_string(server.port_),
                  "--bind",
                  "127.0.0.1",
                  "--unixsocket",
                  server.socket(),
                  "--dir",
                  server.directory(),
                  "--save",
                  "",
                  "--appendonly",
                  "no"};
  // A server that still loads its files accepts connections.
  command.ready = [socket = server.socket()] {
    const std::string answer = ask_unix(socket, "PING\r\n");
    return !answer.empty() && !answer.starts_with("-LOADING");
  };
  if (auto up = server.launch(std::move(command), std::move(arguments)); !up) return up.error();
  return made;
}

result<std::unique_ptr<ServerFixture>> ServerFixture::mariadb(std::vector<std::string> arguments) {
  const auto installer = find_program("mariadb-install-db", "mariadb-server");
  if (!installer) return installer.error();
  const auto program = find_program("mariadbd", "mariadb-server");
  if (!program) return program.error();
  auto made = prepare(Kind::mariadb);
  if (!made) return made.error();
  ServerFixture& server = **made;
  auto before = as_server_user(server.directory());
  if (!before) return before.error();

  const std::string data = "--datadir=" + (server.directory_ / "data");
  // Its own: a server that starts removes whatever looks like a temporary table there, another
  // server's, too, which then fails.
  const std::string scratch = "--tmpdir=" + server.directory();
  std::vector<std::string> install = *before;
  // --force: also on a machine that cannot resolve its own name.
  install.insert(install.end(), {*installer, "--no-defaults", data, scratch, "--force",
                                 "--skip-test-db", "--auth-root-authentication-method=normal"});
  const std::string first = server.directory_ / "first.sql";
  std::ofstream(first) << "CREATE DATABASE IF NOT EXISTS " << kDatabase << ";\n";
  ServerCommand command;
  command.argv = std::move(*before);
  command.argv.insert(
      command.argv.end(),
      {*program, "--no-defaults", data, scratch, "--socket=" + server.socket(),
       "--port=" + std::to_string(server.port_), "--bind-address=127.0.0.1", "--skip-name-resolve",
       "--pid-file=" + (server.directory_ / "pid"), "--init-file=" + first});
  if (auto done = run_to_end(std::move(install), server.directory_ / "log"); !done) {
    return done.error();
  }
  command.ready = [socket = server.socket()] { return accepts_unix(socket); };
  if (auto up = server.launch(std::move(command), std::move(arguments)); !up) return up.error();
  return made;
}

std::string ServerFixture::url(std::string_view query) const {
  return tcp_url(kind_ == Kind::redis ? "0" : kDatabase, query);
}

std::string ServerFixture::tcp_url(std::string_view database, std::string_view query) const {
  const std::string server = kind_ == Kind::redis ? "redis://" : "mysql://root@";
  std::string url = server + "127.0.0.1:" + std::to_string(port_) + "/" + std::string(database);
  if (!query.empty()) url += "?" + std::string(query);
  return url;
}

std::string ServerFixture::socket_url(std::string_view database, std::string_view query) const {
  std::string url = kind_ == Kind::redis
                        ? "redis+unix://" + socket() + "?db=" + std::string(database)
                        : "mysql://root@localhost/" + std::string(database) + "?socket=" + socket();
  if (!query.empty()) url += "&" + std::string(query);
  return url;
}

}  // namespace idem::testing
