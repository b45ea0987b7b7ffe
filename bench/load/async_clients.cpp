#include "load/async_clients.hpp"

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/use_awaitable.hpp>

#include "idem/async.hpp"
#include "load/turns.hpp"

namespace idem::bench {
namespace {

namespace asio = boost::asio;
using asio::use_awaitable;

// The stopwatch and this timer read the same clock.
asio::awaitable<void> wait_until(Nanos at) {
  if (at <= stopwatch()) co_return;
  asio::steady_timer timer(co_await asio::this_coro::executor);
  timer.expires_at(asio::steady_timer::time_point(std::chrono::nanoseconds(at)));
  co_await timer.async_wait(use_awaitable);
}

class AsyncClient {
 public:
  AsyncClient(const RoundTask& task, AsyncService& service, Client& client,
              const std::atomic<bool>& stop)
      : task_(task), service_(service), client_(client), stop_(stop) {}

  asio::awaitable<void> work(Nanos start) {
    Turns turns(task_, client_.number(), start, stop_);
    while (const auto turn = turns.next(client_.result())) {
      while (const auto again = account().lapsed()) co_await operate(*again, 0);
      co_await wait_until(turn->due);
      co_await operate(turn->operation, turn->due);
    }
    client_.result().elapsed = stopwatch() - start;
  }

 private:
  Account& account() { return client_.account(); }

  asio::awaitable<void> operate(Operation operation, Nanos due) {
    const Account::Sent sent = account().send(operation, due);
    auto lease = account().claimed(
        sent, co_await service_.async_claim(account().request_for(sent), {}, use_awaitable));
    if (!lease) co_return;
    if (task_.workload->work > Micros(0))
      co_await wait_until(stopwatch() + nanos(task_.workload->work));
    const std::string bytes = account().result_for(sent, *lease);
    for (int tries = 1;; ++tries) {
      const Nanos at = stopwatch();
      const auto outcome = co_await service_.async_complete(*lease, bytes, {}, use_awaitable);
      if (account().completed(sent, *lease, outcome, at, tries)) co_return;
    }
  }

  const RoundTask& task_;
  AsyncService& service_;
  Client& client_;
  const std::atomic<bool>& stop_;
};

}  // namespace

void work_asynchronously(const RoundTask& task, const IdempotencyService& service,
                         std::span<const std::unique_ptr<Client>> clients,
                         const std::atomic<bool>& stop) {
  asio::io_context loop(1);
  AsyncService async(loop.get_executor(), service);
  std::vector<AsyncClient> all;
  for (const auto& client : clients) all.emplace_back(task, async, *client, stop);
  const Nanos cpu = thread_cpu();
  const Nanos start = stopwatch();
  for (AsyncClient& one : all) asio::co_spawn(loop, one.work(start), asio::detached);
  loop.run();
  clients.front()->result().cpu = thread_cpu() - cpu;
}

}  // namespace idem::bench
