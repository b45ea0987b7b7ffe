// `idem serve` before a store that goes wrong: what clients are told, and claims that come late.
#include <gmock/gmock.h>

#include <future>

#include "outage_log.hpp"
#include "serve_fixture.hpp"

namespace idem::serve {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using testing::Fault;
using ::testing::HasSubstr;
using ::testing::Not;
using testing::Verb;

class ServeStoreTest : public ServeTest {
 protected:
  ServeStoreTest() { service_options.timeout = 30ms; }

  static std::string metrics(std::uint16_t port) {
    return fetch(port, http::get("/metrics")).body();
  }
  // Sends it again and again until it is answered by the upstream, or from its result, or in doubt.
  static BeastResponse send_until_done(std::uint16_t port, const BeastRequest& request) {
    for (;;) {
      BeastResponse response = fetch(port, request);
      if (code(response) != "in_progress") return response;
    }
  }
};

TEST_F(ServeStoreTest, AnUnknownEndAndAStoreThatIsAwayAreToldApart) {
  const auto port = start();
  faults->on_every_call(Verb::insert, Fault::refuse);
  BeastResponse response = fetch(port, post("/pay", "k1", "a"));
  EXPECT_EQ(response.result_int(), 503U);
  EXPECT_EQ(code(response), "store_unavailable");
  EXPECT_EQ(response["Retry-After"], "1");
  EXPECT_THAT(response.body(), AllOf(HasSubstr("Nothing was done now"), Not(HasSubstr("409"))));
  EXPECT_THAT(metrics(port), HasSubstr("idem_serve_late_claims 0\n"));
  faults->calm();
  faults->on_every_call(Verb::insert, Fault::lose_request);
  response = fetch(port, post("/pay", "k2", "a"));
  EXPECT_EQ(response.result_int(), 503U);
  EXPECT_EQ(code(response), "store_unavailable");
  EXPECT_EQ(response["Retry-After"], "1");
  EXPECT_THAT(response.body(), HasSubstr("the key may have been taken down"));
  EXPECT_THAT(metrics(port), HasSubstr("idem_serve_late_claims 1\n"));
  EXPECT_EQ(total_runs(), 0);
}

// The store took the claim down and could not say so. Nobody would ever report on it: its key would
// be in doubt for ever, though its request was never forwarded. The lease is longer than the test.
TEST_F(ServeStoreTest, AClaimThatWasTakenDownUnheardIsReleased) {
  const auto port = start();
  faults->on_every_call(Verb::insert, Fault::lose_reply);
  EXPECT_EQ(fetch(port, post("/pay", "k", "a")).result_int(), 503U);
  EXPECT_EQ(store->stats()->processing, 1U);
  faults->calm();
  EXPECT_EQ(send_until_done(port, post("/pay", "k", "a")).result_int(), 201U);
  EXPECT_EQ(total_runs(), 1);
  EXPECT_THAT(metrics(port), HasSubstr("idem_serve_late_claims_total{end=\"released\"} 1\n"));
}

// The same, of a claim that comes only after the client has been answered.
TEST_F(ServeStoreTest, AClaimThatComesLateIsReleased) {
  const auto port = start();
  faults->on_every_call(Verb::insert, Fault::apply_late);
  service_options.timeout = 1ms;
  EXPECT_EQ(fetch(port, post("/pay", "k", "a")).result_int(), 503U);
  faults->calm();
  EXPECT_EQ(send_until_done(port, post("/pay", "k", "a")).result_int(), 201U);
  EXPECT_EQ(send_until_done(port, post("/pay", "k", "a"))["Idempotent-Replayed"], "true");
  EXPECT_EQ(total_runs(), 1);
}

// The client was quicker than the look: what it runs is its own.
TEST_F(ServeStoreTest, WhatTheClientsNextRequestClaimedIsLeftAlone) {
  hold_upstream();
  const auto port = start();
  faults->on_every_call(Verb::insert, Fault::lose_request);
  EXPECT_EQ(fetch(port, post("/pay", "k", "a")).result_int(), 503U);
  faults->calm();
  auto next = std::async(std::launch::async, [&] { return fetch(port, post("/pay", "k", "a")); });
  running.wait();
  server->stop();  // looks for the last time
  go_on.count_down();
  EXPECT_EQ(next.get().result_int(), 201U);
  server->wait();
  EXPECT_EQ(store->stats()->success, 1U);
  EXPECT_EQ(total_runs(), 1);
}

// The card was charged, and the store could not be told: it must not be charged again.
TEST_F(ServeStoreTest, AResultThatTheStoreDidNotTakeIsReportedAgain) {
  const auto port = start();
  faults->on_every_call(Verb::replace, Fault::lose_request);
  EXPECT_EQ(fetch(port, post("/pay", "k", "a")).result_int(), 201U);
  EXPECT_THAT(metrics(port), HasSubstr("idem_serve_unreported_results 1\n"));
  EXPECT_EQ(code(fetch(port, post("/pay", "k", "a"))), "in_progress");
  faults->calm();
  const BeastResponse replay = send_until_done(port, post("/pay", "k", "a"));
  EXPECT_EQ(replay.result_int(), 201U);
  EXPECT_EQ(replay["Idempotent-Replayed"], "true");
  EXPECT_EQ(total_runs(), 1);
}

TEST_F(ServeStoreTest, AnOutageIsToldOnceAndItsEndToo) {
  std::mutex guarded;
  std::vector<std::string> lines;
  service_options.observer = std::make_shared<OutageLog>([&](const std::string& line) {
    const std::lock_guard lock(guarded);
    lines.push_back(line);
  });
  const auto port = start();
  faults->on_every_call(Verb::insert, Fault::refuse);
  for (const char* key : {"a", "b", "c"})
    EXPECT_EQ(fetch(port, post("/pay", key, "x")).result_int(), 503U);
  faults->calm();
  for (const char* key : {"a", "b"})
    EXPECT_EQ(fetch(port, post("/pay", key, "x")).result_int(), 201U);
  const std::lock_guard lock(guarded);
  EXPECT_THAT(lines, ElementsAre(HasSubstr("the store fails (claim)"), "the store works again"));
}

TEST_F(ServeStoreTest, AStopReleasesWhatIsLeftOfThem) {
  const auto port = start();
  faults->on_every_call(Verb::insert, Fault::lose_reply);
  for (int i = 0; i < 20; ++i) {
    EXPECT_EQ(fetch(port, post("/pay", "k" + std::to_string(i), "a")).result_int(), 503U);
  }
  server.reset();
  EXPECT_EQ(store->stats()->records(), 0U);
}

TEST_F(ServeStoreTest, AStopDoesNotWaitForAStoreThatIsAway) {
  const auto port = start();
  faults->on_every_call(Verb::insert, Fault::lose_reply);
  faults->on_every_call(Verb::load, Fault::refuse);
  for (int i = 0; i < 20; ++i) {
    EXPECT_EQ(fetch(port, post("/pay", "k" + std::to_string(i), "a")).result_int(), 503U);
  }
  server.reset();
  EXPECT_EQ(store->stats()->processing, 20U);
}

}  // namespace
}  // namespace idem::serve
