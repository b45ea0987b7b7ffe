// Records in Redis (7.0 or newer) or Valkey: one string per record, changed only by scripts inside
// the server, judged by the server's clock. backends/redis/README.md has the rights it needs.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "idem/backend.hpp"
#include "idem/store.hpp"

namespace idem {

namespace redis {
class Parts;
}

struct RedisOptions {
  std::string host = "127.0.0.1";
  std::uint16_t port = 6379;
  std::string socket;    // path of a unix socket, instead of host and port
  bool tls = false;      // chain and host name are verified
  std::string ca_file;   // PEM; empty: the system's
  bool cluster = false;  // host and port are one of the nodes
  std::string user;      // empty with a password: "default"
  std::string password;
  std::uint32_t database = 0;
  std::string prefix = "idem:";  // of every key; 1 to 64 bytes
  // Of one call, and how long it may wait for a connection: a call ends by it, always.
  Duration timeout = std::chrono::seconds(1);
  Duration connect_timeout = std::chrono::seconds(2);
  std::uint32_t wait_replicas = 0;   // copies that must confirm a write; fewer in time: unknown
  bool evicting_is_warning = false;  // else any maxmemory-policy but noeviction is refused
  std::optional<Durability> min_durability;  // refuse a server that keeps less
  Clock* clock = nullptr;                    // nullptr: system_clock()

  // redis://[user:password@]host[:port][/db]?prefix=&timeout=&connect_timeout=&wait_replicas=
  //         &eviction=refuse|warn&min_durability=none|process|power
  // rediss:// also ca=FILE; redis+unix:///path also db=; redis+cluster:// without a db.
  // invalid_argument: anything else.
  [[nodiscard]] static result<RedisOptions> from_url(StoreUrl url);
};

// One connection (in a cluster one per node) and no thread: whoever waits for a reply reads for
// all. Concurrent calls share it: what they ask goes out together, each call has its own deadline
// and cuts nobody else's. An answer that does not come in time is `unknown` if the request may have
// left, else `unavailable`; nothing is ever sent twice behind the caller's back.
class RedisStore final : public IdempotencyStore {
 public:
  // Connects and looks the server over. unavailable, denied (password, a missing right: named),
  // read_only (a replica), cannot_open (eviction, an old server, less than min_durability).
  [[nodiscard]] static result<std::shared_ptr<RedisStore>> open(RedisOptions options);
  ~RedisStore() override;  // no call may be under way

  void insert(std::span<Insert> ops) override;
  void replace(std::span<Replace> ops) override;
  void load(std::span<Load> ops) override;
  void remove(std::span<Remove> ops) override;

  // These walk over all keys of the database with SCAN, in pages: time grows with the keys there,
  // also with those of others. The server serves other calls in between.
  result<std::uint64_t> sweep(std::size_t limit) override;
  result<Page> list(const ListQuery& query) override;
  result<StoreStats> stats() override;

  [[nodiscard]] const Capabilities& capabilities() const noexcept override;

  // What open() could not check or found doubtful, each a sentence.
  [[nodiscard]] const std::vector<std::string>& warnings() const noexcept;

  // Connections tried so far, failed ones too.
  [[nodiscard]] std::uint64_t connection_attempts() const noexcept;

 private:
  explicit RedisStore(std::unique_ptr<redis::Parts> impl);
  std::unique_ptr<redis::Parts> impl_;
};

[[nodiscard]] Backend redis_backend();

}  // namespace idem
