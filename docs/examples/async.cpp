// Coroutines: a payment, its duplicate, and three requests that wait for the first one's result.
#include "idem/async.hpp"

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/this_coro.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/asio/use_future.hpp>
#include <cassert>
#include <iostream>

#include "idem/open.hpp"

namespace asio = boost::asio;
using namespace std::chrono_literals;

namespace {

int charged = 0;

asio::awaitable<std::string> charge(idem::Attempt& attempt) {
  asio::steady_timer bank(co_await asio::this_coro::executor, 5ms);
  co_await bank.async_wait(asio::use_awaitable);
  ++charged;
  co_return "ok:" + attempt.key().key;
}

asio::awaitable<void> pay(idem::AsyncService& async, const idem::Request request) {
  const auto done = co_await async.async_execute(request, charge);
  if (const auto* executed = std::get_if<idem::Executed>(&*done)) {
    std::cout << "charged: " << executed->result << "\n";
  } else if (const auto* replay = std::get_if<idem::Replay>(&*done)) {
    std::cout << "was charged before: " << replay->result << "\n";
  }
}

asio::awaitable<void> step_by_step(idem::AsyncService& async) {
  const idem::Request request{"refund-7", idem::Fingerprint::of_bytes("7")};
  auto claimed = co_await async.async_claim_or_wait(request, 2s);
  if (auto* won = std::get_if<idem::Claimed>(&*claimed)) {
    const auto done = co_await async.async_complete(won->lease, "refunded");
    if (done && std::holds_alternative<idem::Completed>(*done)) std::cout << "refunded\n";
  }
}

}  // namespace

int main() {
  asio::io_context io;
  idem::ServiceOptions options;
  options.policy.on_duplicate = idem::OnDuplicate::wait;
  idem::IdempotencyService service(idem::open("memory:").value(), options);
  idem::AsyncService async(io.get_executor(), service);

  const idem::Request request{"pay-42", idem::Fingerprint::of_bytes("100 CNY")};
  for (int i = 0; i < 4; ++i) asio::co_spawn(io, pay(async, request), asio::detached);
  asio::co_spawn(io, step_by_step(async), asio::detached);
  asio::post(io, [&] {  // when the payments have begun
    async.async_wait(request, 1s, {}, [](const idem::result<idem::WaitOutcome>& outcome) {
      assert(std::holds_alternative<idem::Replay>(*outcome));
      std::cout << "heard of it\n";
    });
  });
  auto later = async.async_claim({"other", request.fingerprint}, {}, asio::use_future);
  io.run();
  assert(charged == 1);
  assert(std::holds_alternative<idem::Claimed>(*later.get()));
}
