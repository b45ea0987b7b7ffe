// The backend's registration, and private servers for tests and measurements.
#include <algorithm>
#include <array>
#include <boost/version.hpp>
#include <memory>
#include <mutex>

#include "idem/clock.hpp"
#include "idem/redis_store.hpp"
#include "idem/testing/server_fixture.hpp"
#include "store_impl.hpp"

namespace idem {

namespace {

using testing::ServerProcess;
using testing::TempDirectory;

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
  auto server = testing::ServerFixture::redis();
  if (!server) return server.error();
  Fixture fixture;
  fixture.url = (*server)->socket_url("0");
  fixture.owner = std::move(*server);
  const auto url = StoreUrl::parse(fixture.url);
  if (!url) return url.error();
  auto store = open_url(*url, open);
  if (!store) return store.error();
  fixture.store = std::move(*store);
  return fixture;
}

constexpr std::size_t kNodes = 3;

struct PrivateCluster {
  TempDirectory directory;  // goes last
  std::vector<std::unique_ptr<ServerProcess>> nodes;
  std::vector<std::uint16_t> ports;
};

// A port whose companion 10000 above, where nodes talk to each other, is free as well.
result<std::uint16_t> free_node_port() {
  for (int i = 0; i < 200; ++i) {
    const auto port = testing::free_port();
    if (!port) return port;
    const int companion = *port + 10'000;
    if (companion < 65'536 && !testing::accepts_tcp(static_cast<std::uint16_t>(companion))) {
      return port;
    }
  }
  return idem::fail(errc::unavailable, "no pair of free ports for a cluster's node");
}

// Sends one command to one node, and gives the text of the answer.
result<std::string> tell(std::uint16_t port, std::vector<std::string> words) {
  RedisOptions options;
  options.port = port;
  redis::Parts parts(options, nullptr);
  redis::Command command;
  for (std::string& word : words) command.arguments.push_back(std::move(word));
  parts.courier.run({&command, 1});
  if (command.failed()) return command.error;
  return command.reply.text;
}

result<void> introduce(const std::vector<std::uint16_t>& ports) {
  constexpr std::size_t kEach = redis::kSlots / kNodes + 1;
  for (std::size_t i = 0; i < kNodes; ++i) {
    const std::size_t last = std::min((i + 1) * kEach, redis::kSlots) - 1;
    auto told = tell(ports[i],
                     {"CLUSTER", "ADDSLOTSRANGE", std::to_string(i * kEach), std::to_string(last)});
    if (told) told = tell(ports[i], {"CLUSTER", "SET-CONFIG-EPOCH", std::to_string(i + 1)});
    if (told) told = tell(ports[i], {"CLUSTER", "MEET", "127.0.0.1", std::to_string(ports[0])});
    if (!told) return told.error();
  }
  const Time deadline = system_clock().now() + std::chrono::seconds(30);
  const auto ready = [](std::uint16_t port) {
    const auto info = tell(port, {"CLUSTER", "INFO"});
    return info && info->find("cluster_state:ok") != std::string::npos &&
           info->find("cluster_known_nodes:3") != std::string::npos;
  };
  while (!std::all_of(ports.begin(), ports.end(), ready)) {
    if (system_clock().now() > deadline) {
      return idem::fail(errc::unavailable, "the private cluster does not come together");
    }
    system_clock().pause(std::chrono::milliseconds(50));
  }
  return {};
}

result<std::shared_ptr<PrivateCluster>> start_cluster() {
  const auto program = testing::find_program("redis-server", "redis-server");
  if (!program) return program.error();
  auto directory = TempDirectory::make("redis-cluster");
  if (!directory) return directory.error();
  auto made = std::make_shared<PrivateCluster>(PrivateCluster{std::move(*directory), {}, {}});
  for (std::size_t i = 0; i < kNodes; ++i) {
    const auto port = free_node_port();
    if (!port) return port.error();
    const std::string name = "node" + std::to_string(i);
    testing::ServerCommand command;
    command.argv = {*program,
                    "--port",
                    std::to_string(*port),
                    "--bind",
                    "127.0.0.1",
                    "--save",
                    "",
                    "--dir",
                    made->directory.path(),
                    "--cluster-enabled",
                    "yes",
                    "--cluster-config-file",
                    name + ".conf",
                    "--cluster-node-timeout",
                    "3000"};
    command.directory = made->directory.path();
    command.log = made->directory / (name + ".log");
    command.ready = [at = *port] { return testing::accepts_tcp(at); };
    auto node = ServerProcess::launch(std::move(command));
    if (!node) return node.error();
    made->nodes.push_back(std::move(*node));
    made->ports.push_back(*port);
  }
  if (auto introduced = introduce(made->ports); !introduced) return introduced.error();
  return made;
}

// A cluster takes two seconds to come together: one serves all fixtures of the process, each under
// a prefix of its own. The last fixture to go empties it.
class SharedCluster {
 public:
  struct Use {
    std::shared_ptr<PrivateCluster> servers;
    std::string prefix;
  };

  result<Use> enter() {
    const std::lock_guard guard(mutex_);
    if (!servers_) {
      auto started = start_cluster();
      if (!started) return started.error();
      servers_ = std::move(*started);
    }
    ++users_;
    return Use{servers_, "f" + std::to_string(++fixtures_) + ":"};
  }

  void leave() {
    const std::lock_guard guard(mutex_);
    if (--users_ != 0) return;
    for (const std::uint16_t port : servers_->ports) (void)tell(port, {"FLUSHALL"});
  }

 private:
  std::mutex mutex_;
  std::shared_ptr<PrivateCluster> servers_;
  int users_ = 0;
  int fixtures_ = 0;
};

result<Fixture> cluster(const OpenOptions& open) {
  static SharedCluster shared;
  auto use = shared.enter();
  if (!use) return use.error();
  Fixture fixture;
  fixture.owner = std::shared_ptr<void>(use->servers.get(), [](void*) { shared.leave(); });
  fixture.url = "redis+cluster://127.0.0.1:" + std::to_string(use->servers->ports[0]) +
                "?prefix=" + use->prefix;
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
      "rediss://host?ca=FILE", "redis+unix:///path?db=N", "redis+cluster://host:port",
      "... &eviction=refuse|warn&min_durability=none|process|power"};
  backend.summary = "Redis 7 or Valkey: shared by machines, as durable as the server's AOF";
  backend.client = "own RESP2 client over Boost.Asio " BOOST_LIB_VERSION;
  backend.open = [](const StoreUrl& url, const OpenOptions& open) -> result<StorePtr> {
    auto store = open_url(url, open);
    if (!store) return store.error();
    return StorePtr(std::move(*store));
  };
  backend.variants = {"standalone", "cluster"};
  backend.fixture = [](std::string_view variant, const OpenOptions& open) -> result<Fixture> {
    if (variant.empty() || variant == "standalone") return standalone(open);
    if (variant == "cluster") return cluster(open);
    return idem::fail(errc::invalid_argument,
                      "redis has no variant '" + std::string(variant) + "'");
  };
  backend.beside = redis::open_beside;
  backend.diagnose = redis::diagnose;
  backend.identity = [](const StoreUrl& url) {
    const auto options = RedisOptions::from_url(url);
    if (!options) return std::string();
    const std::string host = options->host == "localhost" ? "127.0.0.1" : options->host;
    const std::string server =
        options->socket.empty() ? host + ":" + std::to_string(options->port) : options->socket;
    return server + "/" + std::to_string(options->database) + " " + options->prefix;
  };
  return backend;
}

}  // namespace idem
