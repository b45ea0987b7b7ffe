#include "idem/testing/mysql_server.hpp"

#include <fcntl.h>
#include <pwd.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>

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

}  // namespace

result<std::unique_ptr<MysqlServer>> MysqlServer::start(std::vector<std::string> arguments) {
  const auto installer = find_program("mariadb-install-db", "mariadb-server");
  if (!installer) return installer.error();
  const auto program = find_program("mariadbd", "mariadb-server");
  if (!program) return program.error();
  auto directory = TempDirectory::make("mysql");
  if (!directory) return directory.error();
  auto before = as_server_user(directory->path());
  if (!before) return before.error();
  const auto port = free_port();
  if (!port) return port.error();
  std::unique_ptr<MysqlServer> server(new MysqlServer(std::move(*directory), *port));

  const std::string data = "--datadir=" + (server->directory_ / "data");
  // Its own: a server that starts removes whatever looks like a temporary table there, another
  // server's, too, which then fails.
  const std::string scratch = "--tmpdir=" + server->directory_.path();
  const std::string log = server->directory_ / "log";
  std::vector<std::string> install = *before;
  // --force: also on a machine that cannot resolve its own name.
  install.insert(install.end(), {*installer, "--no-defaults", data, scratch, "--force",
                                 "--skip-test-db", "--auth-root-authentication-method=normal"});
  ServerCommand command;
  command.argv = std::move(*before);
  command.argv.insert(command.argv.end(),
                      {*program, "--no-defaults", data, scratch, "--socket=" + server->socket(),
                       "--port=" + std::to_string(*port), "--bind-address=127.0.0.1",
                       "--skip-name-resolve", "--pid-file=" + (server->directory_ / "pid")});
  if (auto done = run_to_end(std::move(install), log); !done) return done.error();
  std::move(arguments.begin(), arguments.end(), std::back_inserter(command.argv));
  command.directory = server->directory_.path();
  command.log = log;
  command.ready = [socket = server->socket()] { return accepts_unix(socket); };
  auto process = ServerProcess::launch(std::move(command));
  if (!process) return process.error();
  server->process_ = std::move(*process);
  return server;
}

std::string MysqlServer::socket_url(std::string_view database, std::string_view parameters) const {
  std::string url = "mysql://root@localhost/" + std::string(database) + "?socket=" + socket();
  if (!parameters.empty()) url += "&" + std::string(parameters);
  return url;
}

std::string MysqlServer::tcp_url(std::string_view database, std::string_view parameters) const {
  std::string url = "mysql://root@127.0.0.1:" + std::to_string(port_) + "/" + std::string(database);
  if (!parameters.empty()) url += "?" + std::string(parameters);
  return url;
}

}  // namespace idem::testing
