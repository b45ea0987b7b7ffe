// Which connection a key belongs to: the only one, or in a cluster the one of the key's slot.
#pragma once

#include <boost/asio/ssl/context.hpp>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "connection.hpp"

namespace idem::redis {

using ConnectionPtr = std::shared_ptr<Connection>;

inline constexpr std::size_t kSlots = 16384;

// The slot of a key: CRC16 of what stands between the first '{' and the next '}', or of all of it.
[[nodiscard]] std::uint16_t slot_of(std::string_view key);

// Thread safe.
class Router {
 public:
  // Borrows loop and tls.
  Router(Loop& loop, boost::asio::ssl::context* tls, const RedisOptions& options);

  // Never null. In a cluster whose map is not known yet: the node named in the options.
  [[nodiscard]] ConnectionPtr route(std::string_view key);
  // The node at "host:port", as another node called it; ":port" is on that other node's host.
  [[nodiscard]] ConnectionPtr at(std::string_view endpoint, std::string_view told_by);
  // Every connection there is to a node that holds slots; the only one if there is no cluster.
  [[nodiscard]] std::vector<ConnectionPtr> holders();
  // Every connection made so far: where the map may be asked for.
  [[nodiscard]] std::vector<ConnectionPtr> all();

  void move_slot(std::uint16_t slot, const ConnectionPtr& holder);
  // A reply to CLUSTER SLOTS. False if it is not one or covers no slot.
  bool learn(const Reply& slots, std::string_view told_by);

 private:
  ConnectionPtr at_locked(std::string_view endpoint, std::string_view told_by);

  Loop& loop_;
  boost::asio::ssl::context* tls_;
  const RedisOptions options_;
  const ConnectionPtr first_;
  std::mutex mutex_;
  std::map<std::string, ConnectionPtr, std::less<>> nodes_;  // by "host:port"
  std::vector<ConnectionPtr> slots_;                         // empty: no map; null: unknown
};

}  // namespace idem::redis
