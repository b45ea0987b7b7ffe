// RedisOptions from a store URL.
#include <charconv>

#include "idem/redis_store.hpp"

namespace idem {

namespace {

Error wrong(std::string message) { return idem::fail(errc::invalid_argument, std::move(message)); }

result<std::uint32_t> database_of(std::string_view text) {
  std::uint32_t number = 0;
  const auto parsed = std::from_chars(text.data(), text.data() + text.size(), number);
  if (parsed.ec != std::errc() || parsed.ptr != text.data() + text.size()) {
    return wrong("'" + std::string(text) + "' is not a number of a redis database: redis://host/0");
  }
  return number;
}

result<void> take_place(StoreUrl& url, RedisOptions& options) {
  const std::string& scheme = url.scheme();
  options.tls = scheme == "rediss";
  options.cluster = scheme == "redis+cluster";
  options.user = url.user();
  options.password = url.password();
  if (!options.user.empty() && options.password.empty()) {
    return wrong("a user without a password; write redis://user:password@host");
  }
  if (scheme == "redis+unix") {
    if (!url.host().empty() || url.path().size() < 2) {
      return wrong("a unix socket is written redis+unix:///full/path");
    }
    options.socket = url.path();
    return {};
  }
  if (!url.has_authority() || url.host().empty()) {
    return wrong("the host is missing; write " + scheme + "://host:6379");
  }
  options.host = url.host();
  options.port = url.port().value_or(options.port);
  if (url.path().empty() || url.path() == "/") return {};
  if (options.cluster) return wrong("a redis cluster has only one database: no /db there");
  const auto number = database_of(std::string_view(url.path()).substr(1));
  if (!number) return number.error();
  options.database = *number;
  return {};
}

result<void> take_choices(StoreUrl& url, RedisOptions& options) {
  if (const auto prefix = url.text("prefix")) {
    options.prefix = *prefix;
  }
  const std::string eviction = url.text("eviction").value_or("refuse");
  if (eviction != "refuse" && eviction != "warn") return wrong("eviction: refuse or warn");
  options.evicting_is_warning = eviction == "warn";
  const auto least = url.durability("min_durability");
  if (!least) return least.error();
  options.min_durability = *least;
  if (url.scheme() == "rediss") options.ca_file = url.text("ca").value_or("");
  if (url.scheme() == "redis+unix") {
    if (const auto db = url.text("db")) {
      const auto number = database_of(*db);
      if (!number) return number.error();
      options.database = *number;
    }
  }
  return {};
}

result<void> take_limits(StoreUrl& url, RedisOptions& options) {
  const auto timeout = url.duration("timeout");
  if (!timeout) return timeout.error();
  options.timeout = timeout->value_or(options.timeout);
  const auto connect_timeout = url.duration("connect_timeout");
  if (!connect_timeout) return connect_timeout.error();
  options.connect_timeout = connect_timeout->value_or(options.connect_timeout);
  const auto replicas = url.count("wait_replicas");
  if (!replicas) return replicas.error();
  const std::uint64_t copies = replicas->value_or(0);
  if (copies > 100) return wrong("wait_replicas: at most 100");
  options.wait_replicas = static_cast<std::uint32_t>(copies);
  return {};
}

}  // namespace

result<RedisOptions> RedisOptions::from_url(StoreUrl url) {
  RedisOptions options;
  if (auto taken = take_place(url, options); !taken) return taken.error();
  if (auto taken = take_choices(url, options); !taken) return taken.error();
  if (auto taken = take_limits(url, options); !taken) return taken.error();
  if (auto known = url.check_all_known(); !known) return known.error();
  return options;
}

}  // namespace idem
