// Private Redis servers, raw access to them, and stores on them.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "idem/redis_store.hpp"
#include "idem/service.hpp"
#include "idem/testing/server_fixture.hpp"
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

// A ServerFixture that throws if it cannot be started.
class RedisServer {
 public:
  explicit RedisServer(std::vector<std::string> arguments = {})
      : server_(ServerFixture::redis(std::move(arguments)).value()) {}

  [[nodiscard]] std::uint16_t port() const { return server_->port(); }
  [[nodiscard]] const std::string& directory() const { return server_->directory(); }
  [[nodiscard]] std::string url(std::string_view query = "") const { return server_->url(query); }
  [[nodiscard]] ServerProcess& process() { return server_->process(); }

 private:
  std::unique_ptr<ServerFixture> server_;
};

[[nodiscard]] result<std::shared_ptr<RedisStore>> open_redis(std::string_view url,
                                                             Clock* clock = nullptr);

[[nodiscard]] Request request(std::string key, std::string_view body = "body");

}  // namespace idem::testing
