// `idem serve` over real sockets: statuses, upstreams that break, hostile clients, shutdown.
#include <gmock/gmock.h>

#include <atomic>
#include <boost/beast/http.hpp>
#include <future>
#include <random>

#include "router.hpp"
#include "serve_fixture.hpp"

namespace idem::serve {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

TEST_F(ServeTest, TheTableOfStatuses) {
  const auto port = start();
  BeastResponse response = fetch(port, post("/pay", "7c1e", "a"));
  EXPECT_EQ(response.result_int(), 201U);
  EXPECT_EQ(response.count("Idempotent-Replayed"), 0U);
  EXPECT_EQ(response["Idempotency-Key-TTL"], "86400");

  response = fetch(port, post("/pay", "\"7c1e\"", "a"));
  EXPECT_EQ(response.result_int(), 201U);
  EXPECT_EQ(response.body(), "done");
  EXPECT_EQ(response["Idempotent-Replayed"], "true");
  EXPECT_EQ(response["Content-Type"], "text/plain");

  response = fetch(port, post("/pay", "7c1e", "b"));
  EXPECT_EQ(response.result_int(), 422U);
  EXPECT_EQ(code(response), "key_reused");
  EXPECT_EQ(fetch(port, post("/pay?x=1", "7c1e", "a")).result_int(), 422U);

  response = fetch(port, post("/pay", "", "a"));
  EXPECT_EQ(response.result_int(), 400U);
  EXPECT_EQ(code(response), "key_missing");
  EXPECT_THAT(std::string(response["Link"]), HasSubstr("rel=\"describedby\""));
  BeastRequest twice = post("/pay", "7c1e", "a");
  twice.insert("Idempotency-Key", "7c1e");
  EXPECT_EQ(code(fetch(port, twice)), "key_malformed");
  EXPECT_EQ(code(fetch(port, post("/pay", std::string(129, 'x'), "a"))), "key_too_long");

  guard->service().shutdown(0s);
  response = fetch(port, post("/pay", "new", "a"));
  EXPECT_EQ(response.result_int(), 503U);
  EXPECT_EQ(code(response), "store_unavailable");
  EXPECT_EQ(response["Retry-After"], "1");
  EXPECT_EQ(total_runs(), 1);
}

TEST_F(ServeTest, ADuplicateOfARunningRequestIs409) {
  hold_upstream();
  const auto port = start();
  auto first = std::async(std::launch::async, [&] { return fetch(port, post("/pay", "k", "a")); });
  running.wait();
  const BeastResponse response = fetch(port, post("/pay", "k", "a"));
  EXPECT_EQ(response.result_int(), 409U);
  EXPECT_EQ(code(response), "in_progress");
  const int retry_after = std::stoi(std::string(response["Retry-After"]));
  EXPECT_GE(retry_after, 1);
  EXPECT_LE(retry_after, 30);
  go_on.count_down();
  EXPECT_EQ(first.get().result_int(), 201U);
  EXPECT_EQ(total_runs(), 1);
}

TEST_F(ServeTest, DuplicatesMayWaitForTheFirst) {
  service_options.policy.on_duplicate = OnDuplicate::wait;
  hold_upstream();
  const auto port = start();
  std::vector<std::future<BeastResponse>> all;
  for (int i = 0; i < 20; ++i) {
    all.push_back(
        std::async(std::launch::async, [&] { return fetch(port, post("/pay", "k", "a")); }));
  }
  const BeastRequest metrics = http::get("/metrics");
  while (fetch(port, metrics).body().find("idem_serve_waited_total 19") == std::string::npos) {
  }
  go_on.count_down();
  int replayed = 0;
  for (auto& one : all) {
    const BeastResponse response = one.get();
    EXPECT_EQ(response.result_int(), 201U);
    EXPECT_EQ(response.body(), "done");
    replayed += response["Idempotent-Replayed"] == "true" ? 1 : 0;
  }
  EXPECT_EQ(replayed, 19);
  EXPECT_EQ(total_runs(), 1);
}

// An upstream that broke in the middle may have charged the card: by default nobody repeats it.
TEST_F(ServeTest, AnUpstreamThatDiesInTheMiddleIsHeld) {
  act = [](const BeastRequest&) { return std::optional<BeastResponse>(); };
  service_options.policy.lease = 300ms;
  const auto port = start();
  BeastResponse response = fetch(port, post("/pay", "k", "a"));
  EXPECT_EQ(response.result_int(), 502U);
  EXPECT_EQ(code(response), "upstream_in_doubt");
  EXPECT_EQ(code(fetch(port, post("/pay", "k", "a"))), "in_progress");
  do {
    response = fetch(port, post("/pay", "k", "a"));
  } while (code(response) == "in_progress");
  EXPECT_EQ(response.result_int(), 409U);
  EXPECT_EQ(code(response), "in_doubt");
  EXPECT_EQ(total_runs(), 1);
}

TEST_F(ServeTest, OrItMayBeTriedAgain) {
  options.on_cut = OnDoubt::retry;
  options.on_5xx = OnDoubt::retry;
  act = [this](const BeastRequest&) -> std::optional<BeastResponse> {
    const int calls = total_runs();
    if (calls == 1) return std::nullopt;
    if (calls == 2) return reply(500, "oops");
    return reply(201, "done");
  };
  const auto port = start();
  EXPECT_EQ(code(fetch(port, post("/pay", "k", "a"))), "upstream_broke");
  EXPECT_EQ(fetch(port, post("/pay", "k", "a")).body(), "oops");
  EXPECT_EQ(fetch(port, post("/pay", "k", "a")).body(), "done");
  EXPECT_EQ(fetch(port, post("/pay", "k", "a"))["Idempotent-Replayed"], "true");
  EXPECT_EQ(total_runs(), 3);
}

// 500 may come after the effect; 503 says by its meaning that nothing was done.
TEST_F(ServeTest, A500IsHeldAndA503IsTriedAgain) {
  act = [](const BeastRequest& request) {
    return reply(request.body() == "a" ? 500 : 503, "upstream's own words");
  };
  const auto port = start();
  BeastResponse response = fetch(port, post("/pay", "k1", "a"));
  EXPECT_EQ(response.result_int(), 500U);
  EXPECT_EQ(response.body(), "upstream's own words");
  EXPECT_EQ(code(fetch(port, post("/pay", "k1", "a"))), "in_progress");
  EXPECT_EQ(fetch(port, post("/pay", "k2", "b")).result_int(), 503U);
  EXPECT_EQ(fetch(port, post("/pay", "k2", "b")).result_int(), 503U);
  EXPECT_EQ(runs["a"], 1);
  EXPECT_EQ(runs["b"], 2);
}

TEST_F(ServeTest, AnUpstreamThatIsAwayLeavesNoRecord) {
  const auto port = [&] {
    auto closed = std::make_unique<TinyServer>([](const BeastRequest&) { return reply(200, ""); });
    const auto its_port = closed->port();
    closed.reset();
    start();
    server.reset();
    options.upstream = "http://127.0.0.1:" + std::to_string(its_port);
    server = std::move(*Server::start(options, guard));
    return server->port();
  }();
  const BeastResponse response = fetch(port, post("/pay", "k", "a"));
  EXPECT_EQ(response.result_int(), 502U);
  EXPECT_EQ(code(response), "upstream_unreachable");
  EXPECT_EQ(store->stats()->records(), 0U);
}

TEST_F(ServeTest, AnUpstreamThatIsTooSlowIs504AndHeld) {
  options.upstream_time = 100ms;
  hold_upstream("late");
  const auto port = start();
  const BeastResponse response = fetch(port, post("/pay", "k", "a"));
  go_on.count_down();
  EXPECT_EQ(response.result_int(), 504U);
  EXPECT_EQ(code(response), "upstream_in_doubt");
  EXPECT_EQ(code(fetch(port, post("/pay", "k", "a"))), "in_progress");
}

TEST_F(ServeTest, RoutesDecideWhoNeedsAKey) {
  options.routes = {{"POST", "/public/**", http::KeyUse::off, ""},
                    {"PUT", "/orders/*", http::KeyUse::required, "order"},
                    {"POST", "/mail", http::KeyUse::optional, "mail"}};
  const auto port = start();
  EXPECT_EQ(fetch(port, post("/public/a/b", "", "1")).result_int(), 201U);
  EXPECT_EQ(fetch(port, post("/mail", "", "2")).result_int(), 201U);
  EXPECT_EQ(fetch(port, post("/pay", "", "3")).result_int(), 400U);
  BeastRequest put = post("/orders/9", "", "4");
  put.method(boost::beast::http::verb::put);
  EXPECT_EQ(fetch(port, put).result_int(), 400U);
  // The same key in two scopes is two records.
  EXPECT_EQ(fetch(port, post("/mail", "k", "5")).count("Idempotent-Replayed"), 0U);
  EXPECT_EQ(fetch(port, post("/pay", "k", "5")).count("Idempotent-Replayed"), 0U);
  EXPECT_EQ(runs["5"], 2);
}

TEST(Router, Patterns) {
  EXPECT_TRUE(path_matches("/pay", "/pay"));
  EXPECT_FALSE(path_matches("/pay", "/pay/"));
  EXPECT_FALSE(path_matches("/pay", "/payment"));
  EXPECT_TRUE(path_matches("/orders/*/pay", "/orders/9/pay"));
  EXPECT_FALSE(path_matches("/orders/*/pay", "/orders//pay"));
  EXPECT_FALSE(path_matches("/orders/*", "/orders/9/pay"));
  EXPECT_TRUE(path_matches("/a/**", "/a"));
  EXPECT_TRUE(path_matches("/a/**", "/a/b/c"));
  EXPECT_FALSE(path_matches("/a/**", "/ab"));
  EXPECT_TRUE(path_matches("/**", "/"));
}

TEST_F(ServeTest, HeadersThatMustNotTravelDoNot) {
  act = [](const BeastRequest&) {
    BeastResponse response = reply(201, "done");
    response.set("Set-Cookie", "s=1");
    response.set("X-Hop", "1");
    response.set("Connection", "X-Hop");
    response.set("Idempotent-Replayed", "true");
    return response;
  };
  const auto port = start();
  BeastRequest request = post("/pay", "k", "a");
  request.set("Connection", "keep-alive, X-Private");
  request.set("X-Private", "1");
  request.set("Idempotency-Fence", "999");
  request.set("X-Forwarded-For", "10.0.0.1");
  const BeastResponse first = fetch(port, request);
  EXPECT_EQ(first["Set-Cookie"], "s=1");
  EXPECT_EQ(first.count("X-Hop"), 0U);
  EXPECT_EQ(first.count("Idempotent-Replayed"), 0U);
  ASSERT_EQ(seen.size(), 1U);
  EXPECT_EQ(seen[0].count("X-Private"), 0U);
  EXPECT_NE(seen[0]["Idempotency-Fence"], "999");
  EXPECT_EQ(seen[0]["Idempotency-Key"], "k");
  EXPECT_EQ(seen[0]["X-Forwarded-For"], "10.0.0.1, 127.0.0.1");
  const BeastResponse replay = fetch(port, request);
  EXPECT_EQ(replay["Idempotent-Replayed"], "true");
  EXPECT_EQ(replay.count("Set-Cookie"), 0U);
}

TEST_F(ServeTest, ConnectionsAreUsedAgainOnBothSides) {
  const auto port = start();
  TinyClient client(port);
  for (int i = 0; i < 20; ++i) {
    const auto response = client.ask(post("/pay", "k" + std::to_string(i), "a"));
    ASSERT_TRUE(response);
    EXPECT_EQ(response->result_int(), 201U);
  }
  EXPECT_EQ(upstream.connections(), 1);
}

TEST_F(ServeTest, LimitsAreTold) {
  options.request_bytes_max = 1000;
  options.header_bytes_max = 1000;
  options.response_bytes_max = 2000;
  act = [](const BeastRequest&) { return reply(201, std::string(3000, 'x')); };
  const auto port = start();
  EXPECT_EQ(fetch(port, post("/pay", "k", std::string(1001, 'x'))).result_int(), 413U);
  BeastRequest heavy = post("/pay", "k", "a");
  heavy.set("X-Heavy", std::string(2000, 'x'));
  EXPECT_EQ(fetch(port, heavy).result_int(), 431U);
  EXPECT_EQ(code(fetch(port, post("/pay", "k", "a"))), "upstream_too_large");
  // It was handled: its status is kept, and it does not run again.
  const BeastResponse replay = fetch(port, post("/pay", "k", "a"));
  EXPECT_EQ(replay.result_int(), 201U);
  EXPECT_EQ(code(replay), "body_not_kept");
  EXPECT_EQ(runs["a"], 1);
}

TEST_F(ServeTest, WhatIsNotHttpIs400) {
  const auto port = start();
  EXPECT_THAT(http::fetch_bytes(port, "hello\r\n\r\n"), StartsWith("HTTP/1.1 400"));
  // What is wrong with it stands there: a key with a control byte is no matter of the key's rules.
  EXPECT_THAT(http::fetch_bytes(port,
                                "POST /pay HTTP/1.1\r\nHost: a\r\nContent-Length: 0\r\n"
                                "Idempotency-Key: a\x01b\r\n\r\n"),
              ::testing::AllOf(StartsWith("HTTP/1.1 400"), HasSubstr("bad value")));
  EXPECT_THAT(http::fetch_bytes(port,
                                "POST /pay HTTP/1.1\r\nConnection: close\r\n"
                                "Idempotency-Key: k\r\nContent-Length: 0\r\n\r\n"),
              ::testing::AllOf(StartsWith("HTTP/1.1 400"), HasSubstr("No Host header")));
  // Two ways to say how long a body is: nobody may disagree about its end.
  EXPECT_THAT(http::fetch_bytes(port,
                                "POST /pay HTTP/1.1\r\nHost: a\r\nContent-Length: 4\r\n"
                                "Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n"),
              StartsWith("HTTP/1.1 400"));
  EXPECT_THAT(
      http::fetch_bytes(port, "CONNECT a:1 HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n"),
      StartsWith("HTTP/1.1 501"));
  EXPECT_EQ(total_runs(), 0);
}

// RFC 9112 §6.1: a body whose end two servers see at two places hides a request.
TEST_F(ServeTest, TransferCodingsOtherThanChunkedAreRefused) {
  const auto port = start();
  const auto sent = [&](const std::string& codings, const char* version = "1.1") {
    const std::string hidden =
        "POST /hidden HTTP/1.1\r\nHost: a\r\nIdempotency-Key: h\r\n"
        "Content-Length: 6\r\nConnection: close\r\n\r\nhidden";
    return http::fetch_bytes(port, std::string("POST /pay HTTP/") + version +
                                       "\r\nHost: a\r\nIdempotency-Key: k\r\n" + codings +
                                       "\r\n0\r\n\r\n" + hidden);
  };
  for (const char* codings :
       {"Transfer-Encoding: gzip\r\n", "Transfer-Encoding: identity\r\n",
        "Transfer-Encoding: chunked, gzip\r\n", "Transfer-Encoding: xchunked\r\n",
        "Transfer-Encoding: chunked\r\nTransfer-Encoding: identity\r\n",
        "Transfer-Encoding: chunked;a=b\r\n", "Transfer-Encoding: ,\r\n"}) {
    EXPECT_THAT(sent(codings), StartsWith("HTTP/1.1 400")) << codings;
  }
  for (const char* codings : {"Transfer-Encoding: gzip, chunked\r\n",
                              "Transfer-Encoding: gzip\r\nTransfer-Encoding: chunked\r\n",
                              "Transfer-Encoding: chunked, chunked\r\n"}) {
    const std::string answer = sent(codings);
    EXPECT_THAT(answer, ::testing::AnyOf(StartsWith("HTTP/1.1 501"), StartsWith("HTTP/1.1 400")))
        << codings;
    EXPECT_THAT(answer, HasSubstr("Connection: close\r\n")) << codings;
  }
  EXPECT_THAT(sent("Transfer-Encoding: chunked\r\n", "1.0"), StartsWith("HTTP/1.1 400"));
  EXPECT_EQ(total_runs(), 0);
  EXPECT_THAT(sent("Transfer-Encoding: CHUNKED\r\n"), StartsWith("HTTP/1.1 201"));
  EXPECT_EQ(runs["hidden"], 1);  // pipelined, and a request of its own
}

// An upstream that codes its answer in a way nobody asked for: it has acted, its answer is not one.
TEST_F(ServeTest, AnAnswerInAnUnknownCodingIsHeld) {
  act = [](const BeastRequest&) {
    BeastResponse response = reply(201, "done");
    response.set("Transfer-Encoding", "gzip, chunked");
    return response;
  };
  const auto port = start();
  EXPECT_EQ(code(fetch(port, post("/pay", "k", "a"))), "upstream_in_doubt");
  EXPECT_EQ(total_runs(), 1);
}

// A client names headers that are for the next hop only; the key is not its to take away.
TEST_F(ServeTest, AConnectionHeaderTakesNoKeyAway) {
  const auto port = start();
  for (const char* named : {"Idempotency-Key", "close, idempotency-key", "Host, Idempotency-KEY"}) {
    BeastRequest request = post("/pay", named, "a");
    request.set("Idempotency-Key", "\"k" + std::to_string(seen.size()) + "\"");
    request.set("Connection", named);
    EXPECT_EQ(fetch(port, request).result_int(), 201U) << named;
    ASSERT_FALSE(seen.empty());
    EXPECT_EQ(seen.back()["Idempotency-Key"], request["Idempotency-Key"]) << named;
    EXPECT_EQ(seen.back()["Host"], "test") << named;
    EXPECT_EQ(seen.back().count("Connection"), 0U) << named;
  }
  EXPECT_EQ(seen.size(), 3U);
}

TEST_F(ServeTest, AClientMayBeAskedToContinue) {
  const auto port = start();
  TinyClient client(port);
  client.send_bytes(
      "POST /pay HTTP/1.1\r\nHost: a\r\nIdempotency-Key: k\r\nExpect: 100-continue\r\n"
      "Content-Length: 1\r\nConnection: close\r\n\r\na");
  EXPECT_THAT(client.read_all(),
              ::testing::AllOf(StartsWith("HTTP/1.1 100 Continue\r\n\r\n"), HasSubstr("201")));
}

TEST_F(ServeTest, HeadAndBodylessAnswers) {
  act = [](const BeastRequest& request) {
    return request.method() == boost::beast::http::verb::head ? reply(200, "") : reply(204, "");
  };
  const auto port = start();
  BeastRequest head{boost::beast::http::verb::head, "/x", 11};
  head.set("Host", "a");
  EXPECT_EQ(fetch(port, head).result_int(), 200U);
  for (int i = 0; i < 2; ++i) {
    const BeastResponse none = fetch(port, post("/pay", "k", "a"));
    EXPECT_EQ(none.result_int(), 204U);
    EXPECT_FALSE(none.has_content_length()) << "RFC 9110 §8.6; replayed: " << i;
  }
  head.target("/healthz");
  EXPECT_EQ(fetch(port, head)["Content-Type"], "text/plain") << "our own page, not the service's";
}

TEST_F(ServeTest, HealthAndMetrics) {
  const auto port = start();
  BeastRequest get = http::get("/healthz");
  EXPECT_EQ(fetch(port, get).body(), "ok\n");
  get.target("/healthz?from=probe");
  EXPECT_EQ(fetch(port, get).body(), "ok\n");
  (void)fetch(port, post("/pay", "k", "a"));
  (void)fetch(port, post("/pay", "k", "a"));
  get.target("/metrics");
  EXPECT_THAT(fetch(port, get).body(),
              ::testing::AllOf(HasSubstr("idem_serve_requests_total{told=\"executed\"} 1\n"),
                               HasSubstr("idem_serve_answers_total{reason=\"replayed\"} 1\n"),
                               HasSubstr("idem_service_total{event=\"claimed_fresh\"} 1\n")));
}

// What runs is finished; nobody new comes in.
TEST_F(ServeTest, AnOrderlyStopFinishesWhatRuns) {
  hold_upstream();
  const auto port = start();
  TinyClient idle(port);
  auto first = std::async(std::launch::async, [&] { return fetch(port, post("/pay", "k", "a")); });
  running.wait();
  server->stop();
  EXPECT_EQ(idle.read_all(), "");
  go_on.count_down();
  const BeastResponse response = first.get();
  EXPECT_EQ(response.result_int(), 201U);
  EXPECT_FALSE(response.keep_alive());
  server->wait();
  EXPECT_EQ(store->stats()->success, 1U);
}

TEST_F(ServeTest, AStopDoesNotWaitForEver) {
  options.grace = 50ms;
  hold_upstream();
  const auto port = start();
  auto first = std::async(std::launch::async, [&] { return fetch(port, post("/pay", "k", "a")); });
  running.wait();
  server.reset();
  go_on.count_down();
  first.wait();
  EXPECT_EQ(store->stats()->processing, 1U);  // it may still run: nobody takes its claim away
}

// 1,000 hostile keys: each is refused or is a key, and none of them becomes a header line.
TEST_F(ServeTest, HostileKeysInjectNoHeaderLine) {
  const auto port = start();
  std::minstd_rand random(7);
  const std::string_view alphabet("aZ09-\"\\;:,= \t\x01\x7F\xC3\xA9\r", 18);
  TinyClient client(port);
  int accepted = 0;
  for (int i = 0; i < 1000; ++i) {
    std::string key = "k" + std::to_string(i);
    for (int n = 0; n < 6; ++n)
      key.insert(random() % (key.size() + 1), 1, alphabet[random() % alphabet.size()]);
    if (i % 3 == 0) key = "\"" + key + "\"";
    const std::string answer = http::fetch_bytes(port,
                                                 "POST /pay HTTP/1.1\r\nHost: a\r\nConnection: "
                                                 "close\r\nContent-Length: 1\r\nIdempotency-Key: " +
                                                     key + "\r\n\r\na");
    const std::string head = answer.substr(0, answer.find("\r\n\r\n"));
    ASSERT_THAT(head, ::testing::AnyOf(StartsWith("HTTP/1.1 201"), StartsWith("HTTP/1.1 400")))
        << key;
    ASSERT_EQ(head.find("Set-Cookie"), std::string::npos);
    ASSERT_EQ(head.find("k" + std::to_string(i)), std::string::npos);
    accepted += head.starts_with("HTTP/1.1 201") ? 1 : 0;
  }
  EXPECT_GT(accepted, 0);
  EXPECT_EQ(total_runs(), accepted);
}

// Also one whose size is not told beforehand.
TEST_F(ServeTest, ALargeChunkedAnswerIsTold) {
  options.response_bytes_max = 2000;
  act = [](const BeastRequest&) {
    BeastResponse response = reply(201, std::string(3000, 'x'));
    response.chunked(true);
    return response;
  };
  const auto port = start();
  EXPECT_EQ(code(fetch(port, post("/pay", "k", "a"))), "upstream_too_large");
  EXPECT_EQ(code(fetch(port, post("/pay", "k", "a"))), "body_not_kept");
  EXPECT_EQ(runs["a"], 1);
}

// Clients that send a byte now and then are let go, and the others are served meanwhile.
TEST_F(ServeTest, SlowClientsAreLetGo) {
  options.header_time = 200ms;
  const auto port = start();
  std::vector<std::unique_ptr<TinyClient>> slow;
  for (int i = 0; i < 100; ++i) {
    slow.push_back(std::make_unique<TinyClient>(port));
    slow.back()->send_bytes("POST /pay HTTP/1.1\r\nHost: a\r\nX-Slow: ");
  }
  for (int i = 0; i < 50; ++i) {
    EXPECT_EQ(fetch(port, post("/pay", "k" + std::to_string(i), "a")).result_int(), 201U);
  }
  for (auto& client : slow) EXPECT_EQ(client->read_all(), "");
}

TEST_F(ServeTest, MoreConnectionsThanAllowedAreTold503) {
  options.connections_max = 3;
  const auto port = start();
  std::vector<std::unique_ptr<TinyClient>> clients;
  for (int i = 0; i < 3; ++i) {
    clients.push_back(std::make_unique<TinyClient>(port));
    ASSERT_TRUE(clients.back()->ask(post("/pay", "k" + std::to_string(i), "a")));
  }
  EXPECT_THAT(TinyClient(port).read_all(), StartsWith("HTTP/1.1 503"));
}

}  // namespace
}  // namespace idem::serve
