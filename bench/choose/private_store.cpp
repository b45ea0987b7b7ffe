#include "choose/private_store.hpp"

#include <memory>

#include "choose/private_mysql.hpp"
#include "idem/open.hpp"
#include "idem/testing/server_process.hpp"

namespace idem::bench {
namespace {

using testing::ServerProcess;
using testing::TempDirectory;

struct PrivateServer {
  TempDirectory directory;  // goes last
  std::unique_ptr<ServerProcess> process;
};

OpenOptions options_with(Clock& clock) {
  OpenOptions options;
  options.clock = &clock;
  return options;
}

result<Fixture> open_at(std::string url, std::shared_ptr<void> owner, Clock& clock) {
  auto store = open(url, options_with(clock));
  if (!store) return store.error();
  return Fixture{std::move(url), std::move(owner), std::move(*store)};
}

result<Fixture> sqlite_normal(Clock& clock) {
  auto directory = TempDirectory::make("sqlite");
  if (!directory) return directory.error();
  auto owner = std::make_shared<TempDirectory>(std::move(*directory));
  return open_at("sqlite:///" + owner->path() + "/idem.db?synchronous=normal", owner, clock);
}

result<Fixture> redis_appending(const std::string& fsync, Clock& clock) {
  const auto program = testing::find_program("redis-server", "redis-server");
  if (!program) return program.error();
  auto directory = TempDirectory::make("redis");
  if (!directory) return directory.error();
  const std::string socket = *directory / "redis.sock";
  testing::ServerCommand command;
  command.argv = {
      *program,          "--port",       "0",   "--unixsocket",  socket, "--save", "", "--dir",
      directory->path(), "--appendonly", "yes", "--appendfsync", fsync};
  command.directory = directory->path();
  command.log = *directory / "log";
  command.ready = [socket] { return testing::accepts_unix(socket); };
  auto process = ServerProcess::launch(std::move(command));
  if (!process) return process.error();
  auto owner =
      std::make_shared<PrivateServer>(PrivateServer{std::move(*directory), std::move(*process)});
  return open_at("redis+unix://" + socket, owner, clock);
}

}  // namespace

Subject private_subject(const std::string& backend, Durability tier, Clock& clock) {
  Subject subject{backend, {}, true};
  subject.open = [backend, tier, &clock]() -> result<Fixture> {
    if (backend == "sqlite" && tier != Durability::power) return sqlite_normal(clock);
    if (backend == "redis" && tier != Durability::none)
      return redis_appending(tier == Durability::power ? "always" : "no", clock);
    if (backend == "mysql" && tier != Durability::power)
      return private_mysql(tier, options_with(clock));
    return make_fixture(backend, "", options_with(clock));
  };
  return subject;
}

}  // namespace idem::bench
