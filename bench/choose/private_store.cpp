#include "choose/private_store.hpp"

#include <memory>

#include "idem/open.hpp"
#include "idem/testing/server_fixture.hpp"

namespace idem::bench {
namespace {

using testing::ServerFixture;
using testing::TempDirectory;

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

result<Fixture> redis_appending(const char* fsync, Clock& clock) {
  auto server = ServerFixture::redis({"--appendonly", "yes", "--appendfsync", fsync});
  if (!server) return server.error();
  const std::shared_ptr<ServerFixture> owner = std::move(*server);
  return open_at(owner->socket_url("0"), owner, clock);
}

// Its log is written at each commit and flushed once a second, or both once a second.
result<Fixture> mysql_flushing_later(Durability tier, Clock& clock) {
  const char* const flush = tier == Durability::process ? "2" : "0";
  auto server = ServerFixture::mariadb({std::string("--innodb-flush-log-at-trx-commit=") + flush});
  if (!server) return server.error();
  const std::shared_ptr<ServerFixture> owner = std::move(*server);
  return open_at(owner->socket_url("idem"), owner, clock);
}

}  // namespace

Subject private_subject(const std::string& backend, Durability tier, Clock& clock) {
  Subject subject{backend, {}, true};
  subject.open = [backend, tier, &clock]() -> result<Fixture> {
    if (backend == "sqlite" && tier != Durability::power) return sqlite_normal(clock);
    if (backend == "redis" && tier != Durability::none)
      return redis_appending(tier == Durability::power ? "always" : "no", clock);
    if (backend == "mysql" && tier != Durability::power) return mysql_flushing_later(tier, clock);
    return make_fixture(backend, "", options_with(clock));
  };
  return subject;
}

std::optional<Durability> highest_tier(const std::string& backend) {
  if (backend == "sqlite" || backend == "redis" || backend == "mysql") return Durability::power;
  return std::nullopt;
}

}  // namespace idem::bench
