// The parts of an open RedisStore and what its verbs share.
#pragma once

#include <boost/asio/ssl/context.hpp>
#include <map>
#include <mutex>
#include <vector>

#include "courier.hpp"
#include "idem/redis_store.hpp"
#include "router.hpp"

namespace idem::redis {

class Parts {
 public:
  Parts(RedisOptions opened_with, std::unique_ptr<boost::asio::ssl::context> tls);

  // --- names ---

  // prefix + storage name. A name with a brace gets "{}" in front: to a cluster an empty hash tag
  // means "the whole key", so no user's key decides where keys of others live.
  [[nodiscard]] std::string redis_key(std::string_view storage_name) const;
  void redis_key(std::string_view storage_name, std::string& out) const;
  // The way back; nullopt: not a record's key.
  [[nodiscard]] std::optional<std::string> storage_name_of(std::string_view redis_key) const;

  // --- arguments of the scripts ---

  [[nodiscard]] std::string now_argument() const;
  [[nodiscard]] std::string expiry_ms(Micros keep) const;
  [[nodiscard]] std::string floor_ms() const;
  [[nodiscard]] Command command(std::string_view storage_name, const Script& script) const;

  // False in a child of the process that opened the store: the connection is its parent's.
  [[nodiscard]] bool in_own_process() const;

  // All names under the prefix at least once, sorted, none twice. One server at a time.
  [[nodiscard]] result<std::vector<std::string>> names();
  // One page of SCAN of one server; `cursor` is moved on, "0" at the end.
  [[nodiscard]] result<std::vector<std::string>> scan(const ConnectionPtr& server,
                                                      std::string& cursor);

  RedisOptions options;
  Clock& clock;
  Capabilities capabilities;
  std::vector<std::string> warnings;

  Loop loop;
  std::unique_ptr<boost::asio::ssl::context> tls;
  Router router;
  Courier courier;

  // Where the sweep goes on: by server, its SCAN cursor.
  std::mutex sweep_mutex;
  std::map<std::string, std::string> sweep_cursors;

  // Pages of one listing come from one snapshot of the names: SCAN alone may tell a name twice.
  std::mutex list_mutex;
  std::string snapshot_id;
  std::vector<std::string> snapshot;

 private:
  pid_t opened_by_;
};

// A store under a prefix of its own within the URL's; its keys go with the fixture's owner.
[[nodiscard]] result<Fixture> open_beside(const StoreUrl& url, const OpenOptions& open);

// For `idem store doctor`: every setting that matters, server by server. Leaves nothing behind.
[[nodiscard]] Findings diagnose(const StoreUrl& url, const DiagnoseOptions& options);

// Looks the server over before the store is used. Fills in capabilities and warnings.
[[nodiscard]] result<void> inspect(Parts& parts);

}  // namespace idem::redis
