#include "idem/redis_store.hpp"

#include <unistd.h>

#include <algorithm>
#include <system_error>
#include <utility>

#include "operations.hpp"
#include "record_codec.hpp"
#include "store_impl.hpp"
#include "transport.hpp"

namespace idem {

namespace {

// How far the server's clock may step back without a fence going down: for so long a removed
// record's version and an expired record are kept. Redis's own expiry only cleans up.
constexpr Micros kClockSlack = std::chrono::minutes(10);
// With a virtual clock nothing may go by real time while a test runs.
constexpr Micros kVirtualKeep = std::chrono::hours(24);

constexpr std::size_t kSocketPathMax = 107;
constexpr std::size_t kPrefixBytesMax = 64;
constexpr std::uint64_t kExactInScript = std::uint64_t{1} << 53;

std::string text_of_ms(Micros micros) { return std::to_string((micros.count() + 999) / 1000); }

// Nobody ever wrote a version that large: it is compared as one that never matches, because Lua
// would round it.
std::string expected_argument(std::uint64_t expected) {
  return expected < kExactInScript ? std::to_string(expected) : "-1";
}

}  // namespace

// --- Parts ---------------------------------------------------------------------------------------

redis::Parts::Parts(RedisOptions opened_with, std::unique_ptr<boost::asio::ssl::context> context)
    : options(std::move(opened_with)),
      clock(options.clock != nullptr ? *options.clock : system_clock()),
      tls(std::move(context)),
      router(loop, tls.get(), options),
      courier(loop, router, options),
      opened_by_(::getpid()) {
  capabilities.backend = "redis";
  capabilities.multi_process = true;
  capabilities.server_clock = true;
  capabilities.result_bytes_max = redis::kResultBytesMax;
}

std::string redis::Parts::redis_key(std::string_view storage_name) const {
  std::string key;
  redis_key(storage_name, key);
  return key;
}

void redis::Parts::redis_key(std::string_view storage_name, std::string& out) const {
  out = options.prefix;
  if (storage_name.find('{') != std::string_view::npos) out += "{}";
  out += storage_name;
}

std::optional<std::string> redis::Parts::storage_name_of(std::string_view key) const {
  if (!key.starts_with(options.prefix)) return std::nullopt;
  key.remove_prefix(options.prefix.size());
  if (key.starts_with("{}")) key.remove_prefix(2);
  if (!parse_storage_name(key)) return std::nullopt;
  return std::string(key);
}

std::string redis::Parts::now_argument() const {
  if (clock.offset() == Micros(0)) return {};
  return "@" + std::to_string(clock.now().time_since_epoch().count());
}

std::string redis::Parts::expiry_ms(Micros keep) const {
  const Micros least = clock.offset() == Micros(0) ? Micros(0) : kVirtualKeep;
  return text_of_ms(std::max(keep, least) + kClockSlack);
}

std::string redis::Parts::floor_ms() const {
  return text_of_ms(clock.offset() == Micros(0) ? kClockSlack : kVirtualKeep);
}

redis::Command redis::Parts::command(std::string_view storage_name,
                                     const redis::Script& script) const {
  redis::Command command;
  command.key = redis_key(storage_name);
  command.script = &script;
  command.writes = script.writes;
  command.arguments.push_back(now_argument());
  return command;
}

bool redis::Parts::in_own_process() const { return ::getpid() == opened_by_; }

// --- RedisStore ----------------------------------------------------------------------------------

result<std::shared_ptr<RedisStore>> RedisStore::open(RedisOptions options) {
  if (options.socket.size() > kSocketPathMax || options.prefix.empty() ||
      options.prefix.size() > kPrefixBytesMax) {
    return idem::fail(errc::invalid_argument,
                      "a prefix has 1 to 64 bytes, a unix socket's path at most 107");
  }
  std::unique_ptr<boost::asio::ssl::context> tls;
  if (options.tls) {
    auto made = redis::make_tls_context(options.ca_file);
    if (!made) return made.error();
    tls = std::move(*made);
  }
  std::unique_ptr<redis::Parts> impl;
  try {
    impl = std::make_unique<redis::Parts>(std::move(options), std::move(tls));
  } catch (const std::system_error& error) {  // no descriptor
    return idem::fail(errc::unavailable, std::string("cannot start: ") + error.what());
  }
  if (auto inspected = redis::inspect(*impl); !inspected) return inspected.error();
  return std::shared_ptr<RedisStore>(new RedisStore(std::move(impl)));
}

RedisStore::RedisStore(std::unique_ptr<redis::Parts> impl) : impl_(std::move(impl)) {}

RedisStore::~RedisStore() = default;

void RedisStore::replace(std::span<Replace> ops) {
  redis::perform(*impl_, ops, [&](const Replace& op, std::string_view name) {
    redis::Command command = impl_->command(name, redis::scripts().replace);
    command.arguments.push_back(impl_->expiry_ms(op.draft.keep));
    command.arguments.push_back(std::to_string(op.draft.keep.count()));
    command.arguments.push_back(redis::encode_body(name, op.draft));
    command.arguments.push_back(expected_argument(op.expected));
    command.arguments.push_back(op.draft.fresh ? "1" : "0");
    return command;
  });
}

void RedisStore::load(std::span<Load> ops) {
  redis::perform(*impl_, ops, [&](const Load&, std::string_view name) {
    return impl_->command(name, redis::scripts().load);
  });
}

void RedisStore::remove(std::span<Remove> ops) {
  redis::perform(*impl_, ops, [&](const Remove& op, std::string_view name) {
    redis::Command command = impl_->command(name, redis::scripts().remove);
    command.arguments.push_back(impl_->floor_ms());
    command.arguments.push_back(expected_argument(op.expected));
    return command;
  });
}

const Capabilities& RedisStore::capabilities() const noexcept { return impl_->capabilities; }

const std::vector<std::string>& RedisStore::warnings() const noexcept { return impl_->warnings; }

std::uint64_t RedisStore::connection_attempts() const noexcept {
  std::uint64_t attempts = 0;
  for (const redis::ConnectionPtr& connection : impl_->router.all()) {
    attempts += connection->attempts();
  }
  return attempts;
}

}  // namespace idem
