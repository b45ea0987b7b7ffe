// The backend's registration, and private servers for tests and measurements.
#include <boost/version.hpp>
#include <memory>

#include "idem/redis_store.hpp"
#include "idem/testing/server_process.hpp"

namespace idem {

namespace {

using testing::ServerProcess;
using testing::TempDirectory;

struct PrivateServer {
  TempDirectory directory;  // goes last
  std::unique_ptr<ServerProcess> process;
};

result<std::shared_ptr<RedisStore>> open_url(const StoreUrl& url, const OpenOptions& open) {
  auto options = RedisOptions::from_url(url);
  if (!options) return options.error();
  options->clock = open.clock;
  auto store = RedisStore::open(std::move(*options));
  if (store && open.warn) {
    for (const std::string& warning : (*store)->warnings()) open.warn(warning);
  }
  return store;
}

result<Fixture> standalone(const OpenOptions& open) {
  const auto program = testing::find_program("redis-server", "redis-server");
  if (!program) return program.error();
  auto directory = TempDirectory::make("redis");
  if (!directory) return directory.error();
  const std::string socket = *directory / "redis.sock";
  testing::ServerCommand command;
  command.argv = {*program, "--port", "0",     "--unixsocket",    socket,
                  "--save", "",       "--dir", directory->path(), "--appendonly",
                  "no"};
  command.directory = directory->path();
  command.log = *directory / "log";
  command.ready = [socket] { return testing::accepts_unix(socket); };
  auto process = ServerProcess::launch(std::move(command));
  if (!process) return process.error();

  Fixture fixture;
  fixture.url = "redis+unix://" + socket;
  fixture.owner =
      std::make_shared<PrivateServer>(PrivateServer{std::move(*directory), std::move(*process)});
  const auto url = StoreUrl::parse(fixture.url);
  if (!url) return url.error();
  auto store = open_url(*url, open);
  if (!store) return store.error();
  fixture.store = std::move(*store);
  return fixture;
}

}  // namespace

Backend redis_backend() {
  Backend backend;
  backend.name = "redis";
  backend.schemes = {"redis", "rediss", "redis+unix", "redis+cluster"};
  backend.url_forms = {
      "redis://[user:password@]host[:6379][/db]?prefix=idem:&timeout=1s&wait_replicas=N",
      "rediss://host?ca=FILE", "redis+unix:///path?db=N", "redis+cluster://host:port"};
  backend.summary = "Redis 7 or Valkey: shared by machines, as durable as the server's AOF";
  backend.client = "own RESP2 client over Boost.Asio " BOOST_LIB_VERSION;
  backend.open = [](const StoreUrl& url, const OpenOptions& open) -> result<StorePtr> {
    auto store = open_url(url, open);
    if (!store) return store.error();
    return StorePtr(std::move(*store));
  };
  backend.variants = {"standalone"};
  backend.fixture = [](std::string_view variant, const OpenOptions& open) -> result<Fixture> {
    if (variant.empty() || variant == "standalone") return standalone(open);
    return idem::fail(errc::invalid_argument,
                      "redis has no variant '" + std::string(variant) + "'");
  };
  return backend;
}

}  // namespace idem
