// async_execute: an action that awaits, under a heartbeat.
#include <gtest/gtest.h>

#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/cancellation_signal.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/redirect_error.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/this_coro.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/asio/use_future.hpp>

#include "idem/async.hpp"
#include "idem/open.hpp"
#include "idem/testing/fault_store.hpp"
#include "idem/testing/matchers.hpp"

namespace idem {
namespace {

namespace asio = boost::asio;
using namespace std::chrono_literals;
using namespace testing;  // NOLINT: the matchers

ServiceOptions options_on(Clock& clock) {
  ServiceOptions options;
  options.clock = &clock;
  return options;
}

class AsyncExecute : public ::testing::Test {
 protected:
  static Request request(std::string key) { return {std::move(key), Fingerprint::of_bytes("b")}; }

  template <class Action>
  auto begin(std::string key, Action action) {
    return async_.async_execute(request(std::move(key)), std::move(action), {}, asio::use_future);
  }
  template <class T>
  T now(std::future<T> future) {
    io_.restart();
    io_.run();
    return future.get();
  }

  asio::io_context io_;
  VirtualClock clock_;
  std::shared_ptr<FaultStore> store_ =
      std::make_shared<FaultStore>(open("memory:", {.clock = &clock_}).value(), clock_);
  IdempotencyService service_{store_, options_on(clock_)};
  AsyncService async_{io_.get_executor(), service_};
};

// Waits for ever, unless cancelled: then it throws.
asio::awaitable<std::string> never_ends() {
  asio::steady_timer timer(co_await asio::this_coro::executor, 24h);
  co_await timer.async_wait(asio::use_awaitable);
  co_return "ended";
}

TEST_F(AsyncExecute, RunsOnceAndReplays) {
  int runs = 0;
  const auto pay = [&](Attempt& attempt) -> asio::awaitable<std::string> {
    ++runs;
    co_await asio::post(asio::use_awaitable);
    co_return "paid at fence " + std::to_string(attempt.fence() > 0);
  };
  EXPECT_THAT(now(begin("k", pay)), ExecutedWith("paid at fence 1"));
  EXPECT_THAT(now(begin("k", pay)), ReplayOf("paid at fence 1"));
  EXPECT_EQ(runs, 1);
}

TEST_F(AsyncExecute, SaysByItsReturnTypeHowItEnded) {
  const auto declined = [](Attempt&) -> asio::awaitable<Verdict> { co_return Final{"declined"}; };
  EXPECT_THAT(now(begin("f", declined)), IsActionFailed());
  EXPECT_THAT(service_.claim(request("f")), FailedWith("declined"));
  const auto nothing = [](Attempt&) -> asio::awaitable<NothingDone> { co_return NothingDone{}; };
  const auto declined_for_now = [](Attempt&) -> asio::awaitable<Verdict> {
    co_return Retryable{"503", {}};
  };
  EXPECT_THAT(now(begin("n", nothing)), IsReleased());
  EXPECT_FALSE(service_.get(Key("n")).value().has_value());
  EXPECT_THAT(now(begin("n", declined_for_now)), IsActionFailed());
  EXPECT_THAT(now(begin("n", nothing)), IsActionFailed()) << "an attempt before it may have acted";
}

TEST_F(AsyncExecute, AnExceptionReachesTheCallerAndTheRecord) {
  const auto throws = [](Attempt&) -> asio::awaitable<std::string> {
    co_await asio::post(asio::use_awaitable);
    throw std::runtime_error("503 upstream");
  };
  EXPECT_THROW((void)now(begin("k", throws)), std::runtime_error);
  EXPECT_EQ(service_.get(Key("k")).value()->record.result, "exception: 503 upstream");
  EXPECT_THAT(service_.claim(request("k")), IsClaimed(Kind(ClaimKind::retry)));
}

TEST_F(AsyncExecute, TheHeartbeatKeepsTheLease) {
  asio::steady_timer gate(io_, asio::steady_timer::time_point::max());
  auto running = begin("k", [&](Attempt&) -> asio::awaitable<std::string> {
    boost::system::error_code ignored;
    co_await gate.async_wait(asio::redirect_error(asio::use_awaitable, ignored));
    co_return "slow";
  });
  io_.poll();
  for (int i = 0; i < 100; ++i) clock_.advance(5s);  // the lease is 30 s
  EXPECT_THAT(service_.claim(request("k")), IsInProgress());
  gate.cancel();
  EXPECT_THAT(now(std::move(running)), ExecutedWith("slow"));
}

// An action whose lease may be lost must stop, also while it awaits.
TEST_F(AsyncExecute, WhatTheActionAwaitsIsCancelledWhenTheLeaseMayBeLost) {
  bool stopped = false;
  auto running = begin("k", [&](Attempt& attempt) -> asio::awaitable<std::string> {
    try {
      co_return co_await never_ends();
    } catch (const boost::system::system_error&) {
      stopped = attempt.stop_token().stop_requested();
      co_return "too late";
    }
  });
  io_.poll();
  store_->on_every_call(Verb::replace, Fault::refuse);
  clock_.advance(30s);
  EXPECT_THAT(now(std::move(running)), IsLost());
  EXPECT_TRUE(stopped);
}

TEST_F(AsyncExecute, ACancellationReachesTheActionAndTheRecordIsToldAllTheSame) {
  asio::cancellation_signal stop;
  std::exception_ptr thrown;
  bool over = false;
  async_.async_execute(
      request("k"), [](Attempt&) { return never_ends(); }, {},
      asio::bind_cancellation_slot(stop.slot(),
                                   [&](const std::exception_ptr& e, const result<ExecuteOutcome>&) {
                                     thrown = e;
                                     over = true;
                                   }));
  io_.poll();
  EXPECT_THAT(service_.claim(request("k")), IsInProgress());
  stop.emit(asio::cancellation_type::terminal);
  io_.restart();
  io_.run();
  EXPECT_TRUE(over);
  EXPECT_NE(thrown, nullptr);
  EXPECT_THAT(service_.claim(request("k")), IsClaimed(Kind(ClaimKind::retry)));
}

TEST_F(AsyncExecute, AShutdownStopsTheActionAndItsLeaseIsReported) {
  auto running = begin("k", [](Attempt& attempt) -> asio::awaitable<Verdict> {
    try {
      co_return co_await never_ends();
    } catch (const boost::system::system_error&) {
      if (!attempt.stop_token().stop_requested()) throw;
      co_return NothingDone{};
    }
  });
  io_.poll();
  service_.shutdown(0s);
  EXPECT_THAT(now(std::move(running)), IsReleased());
}

}  // namespace
}  // namespace idem
