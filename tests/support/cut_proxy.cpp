#include "idem/testing/cut_proxy.hpp"

#include <array>
#include <atomic>
#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/write.hpp>
#include <future>
#include <optional>
#include <set>
#include <string>
#include <thread>
#include <vector>

namespace idem::testing {

namespace asio = boost::asio;
using asio::ip::tcp;
using ErrorCode = boost::system::error_code;

namespace {

struct Link {
  explicit Link(asio::io_context& io) : client(io), server(io) {}
  tcp::socket client;
  tcp::socket server;
  bool cut = false;
  std::array<char, 16384> request_buffer{};
  std::array<char, 16384> reply_buffer{};
};
using LinkPtr = std::shared_ptr<Link>;

void close(tcp::socket& socket, bool reset) {
  ErrorCode ignored;
  if (reset) socket.set_option(asio::socket_base::linger(true, 0), ignored);
  if (!reset) socket.shutdown(tcp::socket::shutdown_both, ignored);
  socket.close(ignored);
}

}  // namespace

class CutProxy::Impl : public std::enable_shared_from_this<Impl> {
 public:
  explicit Impl(std::uint16_t server_port)
      : server_(asio::ip::address_v4::loopback(), server_port),
        acceptor_(io_, tcp::endpoint(asio::ip::address_v4::loopback(), 0)),
        work_(io_.get_executor()) {}

  void start() {
    accept();
    thread_ = std::thread([this] { io_.run(); });
  }

  void stop() {
    io_.stop();
    thread_.join();
    links_.clear();
  }

  [[nodiscard]] std::uint16_t port() const { return acceptor_.local_endpoint().port(); }

  // Runs in the proxy's thread; returns when done.
  template <class Work>
  void in_thread(Work work) {
    std::promise<void> done;
    asio::post(io_, [&] {
      work();
      done.set_value();
    });
    done.get_future().wait();
  }

  void arm(const std::optional<Cut>& cut) {
    in_thread([&] {
      cut_ = cut;
      fired = false;
    });
  }

  void release() {
    in_thread([this] {
      for (const LinkPtr& link : links_) {
        if (!link->cut) continue;
        close(link->client, false);
        close(link->server, false);
      }
      std::erase_if(links_, [](const LinkPtr& link) { return link->cut; });
    });
  }

  void deliver_late() {
    std::promise<void> done;
    asio::post(io_, [&] {
      if (!late_) return done.set_value();
      const LinkPtr link = std::exchange(late_, nullptr);
      ErrorCode ignored;
      asio::write(link->server, asio::buffer(held_), ignored);
      link->server.shutdown(tcp::socket::shutdown_send, ignored);
      // The server answers what it understood, and then closes.
      while (!ignored) link->server.read_some(asio::buffer(link->reply_buffer), ignored);
      close(link->server, false);
      done.set_value();
    });
    done.get_future().wait();
  }

  std::atomic<bool> fired{false};
  std::atomic<std::uint64_t> accepted{0}, requested{0}, replied{0};

 private:
  void accept() {
    auto link = std::make_shared<Link>(io_);
    acceptor_.async_accept(link->client, [this, link](ErrorCode error) {
      if (error) return;
      ++accepted;
      link->client.set_option(tcp::no_delay(true), error);
      link->server.connect(server_, error);
      if (error) {
        close(link->client, true);  // as if nobody listened here
      } else {
        link->server.set_option(tcp::no_delay(true), error);
        links_.insert(link);
        pump(link, Cut::Side::request);
        pump(link, Cut::Side::reply);
      }
      accept();
    });
  }

  void pump(const LinkPtr& link, Cut::Side side) {
    const bool request = side == Cut::Side::request;
    tcp::socket& from = request ? link->client : link->server;
    auto& buffer = request ? link->request_buffer : link->reply_buffer;
    from.async_read_some(asio::buffer(buffer), [this, link, side](ErrorCode error, std::size_t n) {
      if (link->cut) return;
      if (error) return end(link);
      pass(link, side, n);
    });
  }

  void pass(const LinkPtr& link, Cut::Side side, std::size_t bytes) {
    const bool request = side == Cut::Side::request;
    auto& buffer = request ? link->request_buffer : link->reply_buffer;
    std::size_t allowed = bytes;
    const bool fires = cut_ && cut_->side == side && bytes > cut_->after;
    if (cut_ && cut_->side == side) {
      if (fires) allowed = static_cast<std::size_t>(cut_->after);
      cut_->after -= allowed;
    }
    (request ? requested : replied) += allowed;
    const Cut::Kind kind = fires ? cut_->kind : Cut::Kind::fin;
    if (fires) {
      link->cut = true;
      cut_.reset();
      held_.assign(buffer.data() + allowed, bytes - allowed);
    }
    tcp::socket& to = request ? link->server : link->client;
    asio::async_write(to, asio::buffer(buffer, allowed),
                      [this, link, side, fires, kind](ErrorCode error, std::size_t) {
                        if (fires) return fire(link, kind);
                        if (link->cut) return;
                        if (error) return end(link);
                        pump(link, side);
                      });
  }

  void fire(const LinkPtr& link, Cut::Kind kind) {
    if (kind == Cut::Kind::late) late_ = link;
    if (kind != Cut::Kind::stall) {
      close(link->client, kind == Cut::Kind::rst);
      if (kind != Cut::Kind::late) close(link->server, false);
      links_.erase(link);
    }
    fired = true;
  }

  void end(const LinkPtr& link) {
    close(link->client, false);
    close(link->server, false);
    links_.erase(link);
  }

  asio::io_context io_;
  const tcp::endpoint server_;
  tcp::acceptor acceptor_;
  asio::executor_work_guard<asio::io_context::executor_type> work_;
  std::thread thread_;
  std::set<LinkPtr> links_;
  std::optional<Cut> cut_;
  LinkPtr late_;
  std::string held_;
};

CutProxy::CutProxy(std::uint16_t server_port) : impl_(std::make_shared<Impl>(server_port)) {
  impl_->start();
}

CutProxy::~CutProxy() { impl_->stop(); }

std::uint16_t CutProxy::port() const { return impl_->port(); }

void CutProxy::arm(const Cut& cut) { impl_->arm(cut); }

void CutProxy::disarm() { impl_->arm(std::nullopt); }

bool CutProxy::fired() const { return impl_->fired; }

void CutProxy::deliver_late() { impl_->deliver_late(); }

void CutProxy::release() { impl_->release(); }

std::uint64_t CutProxy::accepted() const { return impl_->accepted; }

CutProxy::Bytes CutProxy::passed() const { return {impl_->requested, impl_->replied}; }

}  // namespace idem::testing
