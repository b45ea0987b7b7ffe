// Private Redis servers, raw access to them, and stores on them.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "idem/redis_store.hpp"
#include "idem/service.hpp"
#include "idem/testing/server_process.hpp"
#include "resp.hpp"

namespace idem::testing {

// A blocking client of its own for what tests do behind the store's back.
class RawRedis {
 public:
  explicit RawRedis(std::uint16_t port);
  ~RawRedis();
  RawRedis(const RawRedis&) = delete;
  RawRedis& operator=(const RawRedis&) = delete;

  redis::Reply operator()(std::vector<std::string> words);  // sends, and waits for the reply
  void send(const std::vector<std::string>& words);
  redis::Reply receive();
  // The next reply, or nil if nothing comes within `ms`.
  redis::Reply receive_within(int ms);

 private:
  int fd_;
  redis::ReplyReader reader_;
};

class RedisServer {
 public:
  // On a free port; no persistence unless the arguments say so. Throws if it cannot be started.
  explicit RedisServer(std::vector<std::string> arguments = {});

  [[nodiscard]] std::uint16_t port() const { return port_; }
  [[nodiscard]] const std::string& directory() const { return directory_.path(); }
  [[nodiscard]] std::string url(std::string_view query = "") const;
  [[nodiscard]] ServerProcess& process() { return *process_; }

 private:
  TempDirectory directory_;
  std::uint16_t port_;
  std::unique_ptr<ServerProcess> process_;
};

[[nodiscard]] result<std::shared_ptr<RedisStore>> open_redis(std::string_view url,
                                                             Clock* clock = nullptr);

[[nodiscard]] Request request(std::string key, std::string_view body = "body");

}  // namespace idem::testing
