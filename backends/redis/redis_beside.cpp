// Private stores on a server that others use, too.
#include <memory>

#include "store_impl.hpp"
#include "transport.hpp"

namespace idem::redis {
namespace {

// Behind the URL's prefix, so that a user who may use only that may use this; no storage name
// begins so, and the store at the URL itself does not see these keys.
constexpr std::string_view kMark = "~beside-";
constexpr std::size_t kNameChars = 12;

// Deletes every key under the prefix. Best effort: what cannot be reached goes by its expiry.
void empty(const RedisOptions& options) {
  std::unique_ptr<boost::asio::ssl::context> tls;
  if (options.tls) {
    auto made = make_tls_context(options.ca_file);
    if (!made) return;
    tls = std::move(*made);
  }
  Parts parts(options, std::move(tls));
  const Time deadline = system_clock().now() + options.connect_timeout.micros();
  if (options.cluster && !parts.courier.learn_slots(deadline)) return;
  for (const ConnectionPtr& server : parts.router.holders()) {
    std::string cursor = "0";
    do {
      const auto names = parts.scan(server, cursor);
      if (!names) return;
      std::vector<Command> commands;
      for (const std::string& name : *names) {
        Command& command = commands.emplace_back();
        command.on = server;
        command.arguments.push_back("DEL");
        command.arguments.push_back(parts.redis_key(name));
      }
      if (!commands.empty()) parts.courier.run(commands);
    } while (cursor != "0");
  }
}

}  // namespace

result<Fixture> open_beside(const StoreUrl& url, const OpenOptions& open) {
  auto options = RedisOptions::from_url(url);
  if (!options) return options.error();
  options->clock = open.clock;
  options->prefix += std::string(kMark) + Owner::random().hex().substr(0, kNameChars) + ":";
  auto store = RedisStore::open(*options);
  if (!store) return store.error();
  Fixture made;
  made.owner = std::shared_ptr<void>(nullptr, [at = *options](void*) { empty(at); });
  made.store = std::move(*store);
  return made;
}

}  // namespace idem::redis
