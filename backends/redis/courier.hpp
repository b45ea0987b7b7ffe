// Brings commands to their servers and answers back, within one deadline: forgotten scripts,
// redirections and the copies that replicas must confirm are its business.
#pragma once

#include <atomic>
#include <boost/container/small_vector.hpp>
#include <span>
#include <string>
#include <string_view>

#include "idem/time.hpp"
#include "router.hpp"
#include "scripts.hpp"

namespace idem::redis {

// A script on one key, a plain command, or one that is encoded already.
struct Command {
  std::string key;                 // where it belongs, and a script's only key; or ""
  const Script* script = nullptr;  // null: a plain command, its name is arguments[0]
  boost::container::small_vector<std::string, 6> arguments;
  std::string_view wire;    // if not empty: what is sent, instead of the above; borrowed
  Claim claim;              // of wire: `SET key value NX GET`, with the key that belongs to it
  ConnectionPtr on;         // where to; null: where the key belongs
  bool writes = false;      // waits for the replicas, if the options want it
  bool tells_time = false;  // asks the server for its time, behind the trip's commands

  // The answer: `reply` if error.code is errc{}, and never an error reply except where `plain`
  // commands want to see it.
  Reply reply;
  Error error{};
  Time served_at{};  // tells_time, not failed(): the server's clock, right after the command

  [[nodiscard]] bool failed() const { return error.code != errc{}; }
  [[nodiscard]] std::string_view belongs_to() const {
    return wire.empty() ? std::string_view(key) : wire.substr(claim.key_at, claim.key_bytes);
  }
};

// Thread safe.
class Courier {
 public:
  Courier(Loop& loop, Router& router, const RedisOptions& options)
      : loop_(loop), router_(router), options_(options) {}

  // All commands within RedisOptions::timeout, in one round trip per server unless a server has
  // forgotten a script or a slot has moved. Commands on one key keep their order.
  void run(std::span<Command> commands);

  // Asks any node for the cluster's map.
  result<void> learn_slots(Time deadline);

 private:
  struct Trip;
  struct Round;
  void post(Round& round);
  bool take(Round& round, Trip& trip);
  bool retry(Command& command, Trip& trip, Round& round);

  Loop& loop_;
  Router& router_;
  const RedisOptions& options_;
  std::atomic<bool> stale_{false};  // the map of the cluster: learn it before the next call
};

}  // namespace idem::redis
