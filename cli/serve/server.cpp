#include "server.hpp"

#include <algorithm>
#include <boost/asio/as_tuple.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/signal_set.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/asio/write.hpp>
#include <csignal>
#include <thread>

#include "idem/store_url.hpp"
#include "session.hpp"

namespace idem::serve {
namespace {

namespace asio = boost::asio;
using asio::ip::tcp;
using boost::system::error_code;

constexpr auto kTuple = asio::as_tuple(asio::use_awaitable);
constexpr std::string_view kFull =
    "HTTP/1.1 503 Service Unavailable\r\nContent-Length: 0\r\nRetry-After: 1\r\n"
    "Connection: close\r\n\r\n";
constexpr Micros kAcceptPause = std::chrono::milliseconds(50);
constexpr std::size_t kSweepStep = 500;

asio::awaitable<void> serve(std::unique_ptr<Session> session) {
  co_await session->run();
  session.reset();  // now, not when the frame goes: what follows counts the connections
}

asio::awaitable<void> refuse(tcp::socket socket) {
  (void)co_await asio::async_write(socket, asio::buffer(kFull.data(), kFull.size()), kTuple);
}

// "host:port", also "[::1]:port".
result<tcp::endpoint> endpoint_of(const std::string& text) {
  const std::size_t colon = text.rfind(':');
  std::string host = text.substr(0, colon);
  if (host.starts_with('[') && host.ends_with(']')) host = host.substr(1, host.size() - 2);
  error_code ec;
  const auto address = asio::ip::make_address(host == "localhost" ? "127.0.0.1" : host, ec);
  const std::string port = colon == std::string::npos ? "" : text.substr(colon + 1);
  const bool digits =
      !port.empty() && port.size() <= 5 &&
      std::all_of(port.begin(), port.end(), [](char c) { return c >= '0' && c <= '9'; });
  if (ec || !digits || std::stoi(port) > 65535) {
    return fail(errc::invalid_argument,
                "'" + text + "' is not an address to listen on; write it like 127.0.0.1:8080");
  }
  return tcp::endpoint(address, static_cast<std::uint16_t>(std::stoi(port)));
}

}  // namespace

Shared::Shared(ServeOptions its_options, std::shared_ptr<http::Guard> its_guard,
               std::string its_authority, std::size_t store_threads)
    : options(std::move(its_options)),
      guard(std::move(its_guard)),
      router(options.routes, guard->policy().key),
      authority(std::move(its_authority)),
      store(store_threads),
      waiting(guard->service(), store),
      late(guard->service(), metrics) {
  if (options.on_5xx == OnDoubt::hold || options.on_cut == OnDoubt::hold) {
    claims.policy.on_lapsed = OnLapsed::hold;
  }
}

Worker::Worker(Shared& its_shared, const UpstreamOptions& options)
    : shared(its_shared),
      upstream(context, options, its_shared.guard->service().clock(), its_shared.metrics) {}

class Server::Impl {
 public:
  Impl(const ServeOptions& options, const std::shared_ptr<http::Guard>& guard,
       const StoreUrl& upstream)
      : shared_(options, guard, authority_of(upstream), store_threads(options, *guard)) {
    UpstreamOptions to;
    to.host = upstream.host();
    to.port = std::to_string(upstream.port().value_or(80));
    to.connect_time = shared_.options.connect_time;
    to.answer_time = shared_.options.upstream_time;
    to.body_bytes_max = shared_.options.response_bytes_max;
    const auto threads = std::clamp<std::uint64_t>(shared_.options.threads, 1, 64);
    for (std::uint64_t i = 0; i < threads; ++i) {
      workers_.push_back(std::make_unique<Worker>(shared_, to));
      works_.emplace_back(workers_.back()->context.get_executor());
    }
    acceptor_ = std::make_unique<tcp::acceptor>(first().context);
    late_timer_ = std::make_unique<asio::steady_timer>(first().context);
    shared_.late.on_watch = [this] {
      asio::post(first().context, [this] { late_timer_->cancel(); });
    };
    sweep_timer_ = std::make_unique<asio::steady_timer>(first().context);
    grace_timer_ = std::make_unique<asio::steady_timer>(first().context);
    signals_ = std::make_unique<asio::signal_set>(first().context);
  }

  ~Impl() {
    stop();
    wait();
  }

  result<void> listen() {
    const auto endpoint = endpoint_of(shared_.options.listen);
    if (!endpoint) return endpoint.error();
    error_code ec;
    acceptor_->open(endpoint->protocol(), ec);
    if (!ec) acceptor_->set_option(tcp::acceptor::reuse_address(true), ec);
    if (!ec) acceptor_->bind(*endpoint, ec);
    if (!ec) acceptor_->listen(asio::socket_base::max_listen_connections, ec);
    if (ec) {
      return fail(errc::unavailable,
                  "cannot listen on " + shared_.options.listen + ": " + ec.message());
    }
    port_ = acceptor_->local_endpoint().port();
    asio::co_spawn(first().context, accept(), asio::detached);
    asio::co_spawn(first().context, sweep(), asio::detached);
    asio::co_spawn(first().context, look_for_late_claims(), asio::detached);
    for (const auto& worker : workers_) {
      threads_.emplace_back([&context = worker->context] { context.run(); });
    }
    return {};
  }

  [[nodiscard]] std::uint16_t port() const { return port_; }

  void stop() {
    if (stopping_.exchange(true)) return;
    asio::post(first().context, [this] {
      error_code ignored;
      acceptor_->close(ignored);
      sweep_timer_->cancel();
      late_timer_->cancel();
      signals_->cancel(ignored);
      asio::co_spawn(first().context, end_grace(), asio::detached);
    });
    for (const auto& worker : workers_) {
      asio::post(worker->context, [this, &one = *worker] {
        one.draining = true;
        one.upstream.close_idle();
        for (Session* session : one.sessions) session->close_if_idle();
        drained_if_empty();
      });
    }
  }

  void wait() {
    for (std::thread& thread : threads_) thread.join();
    threads_.clear();
    shared_.store.join();
    const Clock& clock = shared_.guard->service().clock();
    shared_.late.look_for_the_last_time(clock.now() + shared_.options.grace.micros());
  }

  void stop_on_signals() {
    asio::post(first().context, [this] {
      error_code ignored;
      signals_->add(SIGTERM, ignored);
      signals_->add(SIGINT, ignored);
      signals_->async_wait([this](error_code ec, int) {
        if (!ec) stop();
      });
    });
  }

 private:
  static std::string authority_of(const StoreUrl& url) {
    return url.host() + (url.port() ? ":" + std::to_string(*url.port()) : "");
  }
  // A store that keeps nothing beyond this process is in it and answers at once.
  static std::size_t store_threads(const ServeOptions& options, const http::Guard& guard) {
    const Capabilities& store = guard.service().store().capabilities();
    const bool in_process = store.durability == Durability::none && !store.multi_process;
    return in_process ? 0 : std::clamp<std::size_t>(options.store_threads, 1, 256);
  }

  Worker& first() { return *workers_.front(); }

  asio::awaitable<void> accept() {
    for (std::size_t next = 0;; ++next) {
      Worker& worker = *workers_[next % workers_.size()];
      auto [ec, socket] = co_await acceptor_->async_accept(worker.context, kTuple);
      if (!acceptor_->is_open()) break;
      if (ec) {  // out of descriptors, or the client is gone already
        asio::steady_timer pause(first().context);
        pause.expires_after(kAcceptPause);
        (void)co_await pause.async_wait(kTuple);
        continue;
      }
      if (shared_.metrics.connections() >=
          static_cast<std::int64_t>(shared_.options.connections_max)) {
        asio::co_spawn(worker.context, refuse(std::move(socket)), asio::detached);
        continue;
      }
      asio::post(worker.context, [this, &worker, moved = std::move(socket)]() mutable {
        if (worker.draining) return;
        asio::co_spawn(worker.context, serve(std::make_unique<Session>(worker, std::move(moved))),
                       [this](const std::exception_ptr&) { drained_if_empty(); });
      });
    }
  }

  // Once nothing is left to do, the event loops end.
  void drained_if_empty() {
    if (stopping_ && shared_.metrics.connections() == 0) {
      asio::post(first().context, [this] { grace_timer_->cancel(); });
    }
  }

  // Ends the event loops when the last connection is gone, or when time is up.
  asio::awaitable<void> end_grace() {
    grace_timer_->expires_after(shared_.options.grace.micros());
    if (shared_.metrics.connections() > 0) (void)co_await grace_timer_->async_wait(kTuple);
    works_.clear();
    for (const auto& worker : workers_) worker->context.stop();
  }

  asio::awaitable<void> sweep() {
    auto step = [this] { return shared_.guard->service().sweep(kSweepStep); };
    while (!stopping_) {
      sweep_timer_->expires_after(shared_.options.sweep_every.micros());
      const auto [ec] = co_await sweep_timer_->async_wait(kTuple);
      if (ec) break;
      for (;;) {
        const auto swept = co_await shared_.store.run(step);
        if (!swept || swept->abandoned + swept->expired == 0 || stopping_) break;
      }
    }
  }

  asio::awaitable<void> look_for_late_claims() {
    auto look = [this] { return shared_.late.look(); };
    while (!stopping_) {
      late_timer_->expires_after(shared_.late.until_due());
      (void)co_await late_timer_->async_wait(kTuple);  // cut short by a new one, and by stop()
      while (!stopping_ && co_await shared_.store.run(look)) {
      }
    }
  }

  Shared shared_;
  std::vector<std::unique_ptr<Worker>> workers_;
  std::vector<asio::executor_work_guard<asio::io_context::executor_type>> works_;
  std::unique_ptr<tcp::acceptor> acceptor_;
  std::unique_ptr<asio::steady_timer> sweep_timer_, late_timer_, grace_timer_;
  std::unique_ptr<asio::signal_set> signals_;
  std::vector<std::thread> threads_;
  std::atomic<bool> stopping_{false};
  std::uint16_t port_ = 0;
};

Server::Server(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Server::~Server() = default;

result<std::unique_ptr<Server>> Server::start(const ServeOptions& options,
                                              const std::shared_ptr<http::Guard>& guard) {
  auto upstream = StoreUrl::parse(options.upstream);
  if (!upstream || upstream->scheme() != "http" || upstream->host().empty()) {
    return fail(errc::invalid_argument,
                "the upstream '" + options.upstream + "' is not a URL like http://127.0.0.1:9000");
  }
  auto impl = std::make_unique<Impl>(options, guard, *upstream);
  if (auto listening = impl->listen(); !listening) return listening.error();
  return std::unique_ptr<Server>(new Server(std::move(impl)));
}

std::uint16_t Server::port() const { return impl_->port(); }
void Server::stop() { impl_->stop(); }
void Server::wait() { impl_->wait(); }
void Server::stop_on_signals() { impl_->stop_on_signals(); }

}  // namespace idem::serve
