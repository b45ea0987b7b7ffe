#include "redis_servers.hpp"

#include <arpa/inet.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <stdexcept>

namespace idem::testing {

RawRedis::RawRedis(std::uint16_t port) : fd_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(port);
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  if (::connect(fd_, reinterpret_cast<const sockaddr*>(&address), sizeof(address)) != 0) {
    throw std::runtime_error("no redis on port " + std::to_string(port));
  }
}

RawRedis::~RawRedis() { ::close(fd_); }

void RawRedis::send(const std::vector<std::string>& words) {
  std::string bytes;
  const std::vector<std::string_view> views(words.begin(), words.end());
  redis::append_command(bytes, views);
  for (std::size_t at = 0; at < bytes.size();) {
    const ssize_t sent = ::send(fd_, bytes.data() + at, bytes.size() - at, MSG_NOSIGNAL);
    if (sent <= 0) throw std::runtime_error("raw redis: send failed");
    at += static_cast<std::size_t>(sent);
  }
}

redis::Reply RawRedis::receive() { return receive_within(-1); }

redis::Reply RawRedis::receive_within(int ms) {
  for (;;) {
    auto reply = reader_.next();
    if (!reply) throw std::runtime_error(reply.error().message);
    if (*reply) return std::move(**reply);
    pollfd waiting{fd_, POLLIN, 0};
    if (::poll(&waiting, 1, ms) == 0) return {};
    const auto room = reader_.prepare();
    const ssize_t got = ::recv(fd_, room.data(), room.size(), 0);
    if (got <= 0) throw std::runtime_error("raw redis: connection lost");
    reader_.commit(static_cast<std::size_t>(got));
  }
}

redis::Reply RawRedis::operator()(std::vector<std::string> words) {
  send(words);
  return receive();
}

result<std::shared_ptr<RedisStore>> open_redis(std::string_view url, Clock* clock) {
  const auto parsed = StoreUrl::parse(url);
  if (!parsed) return parsed.error();
  auto options = RedisOptions::from_url(*parsed);
  if (!options) return options.error();
  options->clock = clock;
  return RedisStore::open(std::move(*options));
}

Request request(std::string key, std::string_view body) {
  return {Key(std::move(key)), Fingerprint::of_bytes(body)};
}

}  // namespace idem::testing
