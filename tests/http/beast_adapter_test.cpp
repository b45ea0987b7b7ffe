// The Beast adapter over real sockets.
#include <gmock/gmock.h>

#include <boost/beast/http.hpp>
#include <random>
#include <stdexcept>

#include "idem/testing/reference_store.hpp"
#include "tiny_http.hpp"

namespace idem::http {
namespace {

class BeastAdapterTest : public ::testing::Test {
 protected:
  VirtualClock clock;
  std::shared_ptr<testing::ReferenceStore> store = std::make_shared<testing::ReferenceStore>(clock);
  Guard guard{std::make_shared<IdempotencyService>(store, on_clock(clock))};
  std::function<BeastResponse(const BeastRequest&)> handler = [](const BeastRequest&) {
    return reply(201, "done");
  };
  int runs = 0;
  TinyServer server{[this](const BeastRequest& request) -> std::optional<BeastResponse> {
    try {
      return handle_beast(guard, request, {.tenant = "alice", .biz_type = "pay"},
                          [&](const BeastRequest& asked) {
                            ++runs;
                            return handler(asked);
                          });
    } catch (...) {
      return reply(500, "threw");
    }
  }};
  BeastResponse ask(std::string_view key, std::string_view body = "a") {
    return fetch(server.port(), post("/pay", key, body));
  }
};

TEST_F(BeastAdapterTest, TheTableOfStatuses) {
  EXPECT_EQ(ask("k").result_int(), 201U);
  const BeastResponse replay = ask("\"k\"");
  EXPECT_EQ(replay.result_int(), 201U);
  EXPECT_EQ(replay.body(), "done");
  EXPECT_EQ(replay["Idempotent-Replayed"], "true");
  EXPECT_EQ(ask("k", "b").result_int(), 422U);
  EXPECT_EQ(ask("").result_int(), 400U);
  EXPECT_EQ(runs, 1);
  guard.service().shutdown(Micros(0));
  EXPECT_EQ(ask("new").result_int(), 503U);
}

TEST_F(BeastAdapterTest, A500IsTriedAgain) {
  handler = [&](const BeastRequest&) {
    return runs == 1 ? reply(500, "oops") : reply(201, "done");
  };
  EXPECT_EQ(ask("k").result_int(), 500U);
  EXPECT_EQ(ask("k").result_int(), 201U);
  EXPECT_EQ(ask("k")["Idempotent-Replayed"], "true");
  EXPECT_EQ(runs, 2);
}

// Of any type: the next delivery must not wait for the lease.
TEST_F(BeastAdapterTest, AHandlerThatThrowsLeavesNothingProcessing) {
  handler = [&](const BeastRequest&) -> BeastResponse {
    if (runs == 1) throw std::runtime_error("no connection");
    if (runs == 2) throw 42;
    return reply(201, "done");
  };
  EXPECT_EQ(ask("k").body(), "threw");
  EXPECT_EQ(ask("k").body(), "threw");
  EXPECT_EQ(store->stats()->processing, 0U);
  EXPECT_EQ(ask("k").result_int(), 201U);
}

// Whatever somebody put into the store, it adds no header line.
TEST_F(BeastAdapterTest, HostileStoredResponsesInjectNothing) {
  std::minstd_rand random(11);
  const std::string_view alphabet("aZ: \r\n\t\0\x7F", 9);
  int sent = 0;
  for (int i = 0; i < 1000; ++i) {
    const std::string key = "h" + std::to_string(i);
    std::string value = "v";
    for (int n = 0; n < 5; ++n) value += alphabet[random() % alphabet.size()];
    const std::string names[] = {"X-A", "Set-Cookie", "Date", "X A", "Connection"};
    const std::string stored = "idem-http/1 200 2 kept\n" + names[random() % 5] + ": " + value +
                               "\r\nSet-Cookie: stolen=1\n\nok";
    const Fingerprint hash = fingerprint_of("POST", "/pay", "a");
    auto claimed = guard.service().claim({{"alice", "pay", key}, hash});
    ASSERT_TRUE(claimed);
    ASSERT_TRUE(guard.service().complete(std::get<Claimed>(*claimed).lease, stored));
    const BeastResponse response = ask(key);
    ASSERT_EQ(response.result_int(), 500U);
    ASSERT_EQ(response.count("Set-Cookie"), 0U);
    ASSERT_EQ(response.count("X-A"), 0U);
    ++sent;
  }
  EXPECT_EQ(sent, 1000);
  EXPECT_EQ(runs, 0);
}

}  // namespace
}  // namespace idem::http
