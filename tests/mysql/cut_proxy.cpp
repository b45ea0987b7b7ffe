#include "cut_proxy.hpp"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <stdexcept>
#include <utility>

namespace idem::mysql_test {
namespace {

sockaddr_in loopback(std::uint16_t port) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(port);
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  return address;
}

bool send_all(int fd, const char* bytes, std::size_t size) {
  while (size > 0) {
    const ssize_t sent = ::send(fd, bytes, size, MSG_NOSIGNAL);
    if (sent <= 0) return false;
    bytes += sent;
    size -= static_cast<std::size_t>(sent);
  }
  return true;
}

void at_once(int fd) {
  const int yes = 1;
  ::setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof yes);
}

}  // namespace

CutProxy::CutProxy(std::uint16_t upstream) : upstream_(upstream) {
  listener_ = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address = loopback(0);
  socklen_t size = sizeof address;
  if (::bind(listener_, reinterpret_cast<sockaddr*>(&address), size) != 0 ||
      ::listen(listener_, 64) != 0 ||
      ::getsockname(listener_, reinterpret_cast<sockaddr*>(&address), &size) != 0 ||
      ::pipe(wake_) != 0)
    throw std::runtime_error("cannot listen");
  port_ = ntohs(address.sin_port);
  thread_ = std::thread([this] { serve(); });
}

CutProxy::~CutProxy() {
  ::close(wake_[1]);
  thread_.join();
  for (Pair& pair : pairs_) close_pair(pair, false);
  ::close(listener_);
  ::close(wake_[0]);
}

void CutProxy::arm(Way way, std::size_t bytes, Cut cut) {
  const std::lock_guard lock(mutex_);
  armed_ = true;
  way_ = way;
  left_ = bytes;
  cut_ = cut;
}

bool CutProxy::disarm() {
  const std::lock_guard lock(mutex_);
  return std::exchange(armed_, false);
}

std::size_t CutProxy::accepted() const {
  const std::lock_guard lock(mutex_);
  return accepted_;
}

void CutProxy::close_pair(Pair& pair, bool reset) {
  for (int* fd : {&pair.client, &pair.server}) {
    if (*fd < 0) continue;
    const linger now{1, 0};
    if (reset) ::setsockopt(*fd, SOL_SOCKET, SO_LINGER, &now, sizeof now);
    ::close(*fd);
    *fd = -1;
  }
}

void CutProxy::accept_one() {
  Pair pair;
  pair.client = ::accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC);
  pair.server = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  const sockaddr_in address = loopback(upstream_);
  at_once(pair.client);
  at_once(pair.server);
  const bool connected =
      ::connect(pair.server, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0;
  {
    const std::lock_guard lock(mutex_);
    ++accepted_;
  }
  if (connected) {
    pairs_.push_back(pair);
  } else {
    close_pair(pair, true);
  }
}

// False: the conversation is over.
bool CutProxy::cut(Pair& pair, Way way, const char* bytes, std::size_t passed, std::size_t all) {
  const int to = way == Way::request ? pair.server : pair.client;
  (void)send_all(to, bytes, passed);
  switch (cut_) {
    case Cut::fin:
    case Cut::rst:
      close_pair(pair, cut_ == Cut::rst);
      return false;
    case Cut::late:
      if (way == Way::request)
        held_.emplace_back(pair.client, std::vector<char>(bytes + passed, bytes + all));
      pair.late = true;
      [[fallthrough]];
    case Cut::stall:
      pair.stalled = true;
      return true;
  }
  return true;
}

bool CutProxy::relay(Pair& pair, Way way) {
  const int from = way == Way::request ? pair.client : pair.server;
  const int to = way == Way::request ? pair.server : pair.client;
  std::array<char, 16384> buffer;
  const ssize_t got = ::recv(from, buffer.data(), buffer.size(), 0);
  if (pair.stalled && got > 0) {
    if (pair.late && way == Way::request)
      (void)send_all(to, buffer.data(), static_cast<std::size_t>(got));
    return true;
  }
  if (got <= 0) {
    if (pair.late && way == Way::request) {
      for (auto& [client, rest] : held_)
        if (client == pair.client) (void)send_all(pair.server, rest.data(), rest.size());
      std::erase_if(held_, [&](const auto& one) { return one.first == pair.client; });
    }
    close_pair(pair, false);
    return false;
  }
  const auto size = static_cast<std::size_t>(got);
  std::unique_lock lock(mutex_);
  if (armed_ && way == way_) {
    if (size > left_ || left_ == 0) {
      armed_ = false;
      return cut(pair, way, buffer.data(), left_, size);
    }
    left_ -= size;
  }
  lock.unlock();
  if (send_all(to, buffer.data(), size)) return true;
  close_pair(pair, false);
  return false;
}

void CutProxy::serve() {
  for (;;) {
    std::vector<pollfd> all{{wake_[0], POLLIN, 0}, {listener_, POLLIN, 0}};
    for (const Pair& pair : pairs_) {
      all.push_back({pair.client, POLLIN, 0});
      all.push_back({pair.server, POLLIN, 0});
    }
    if (::poll(all.data(), all.size(), -1) < 0) continue;
    if (all[0].revents != 0) return;
    for (std::size_t i = 0; i < pairs_.size(); ++i) {
      bool open = true;
      if (all[2 + 2 * i].revents != 0) open = relay(pairs_[i], Way::request);
      if (open && all[3 + 2 * i].revents != 0) (void)relay(pairs_[i], Way::reply);
    }
    std::erase_if(pairs_, [](const Pair& pair) { return pair.client < 0; });
    if (all[1].revents != 0) accept_one();
  }
}

}  // namespace idem::mysql_test
