// The cpp-httplib adapter over real sockets.
#include <gmock/gmock.h>

#include <boost/beast/http.hpp>

#include "idem/http_httplib.hpp"
#include "idem/testing/reference_store.hpp"
#include "tiny_http.hpp"

namespace idem::http {
namespace {

class HttplibAdapterTest : public ::testing::Test {
 protected:
  void SetUp() override {
    server.Post("/pay", guarded(guard, Scope{.biz_type = "pay"},
                                [this](const httplib::Request&, httplib::Response& response) {
                                  ++runs;
                                  response.status = status;
                                  response.set_header("Set-Cookie", "s=1");
                                  response.set_content("done", "text/plain");
                                }));
    port = static_cast<std::uint16_t>(server.bind_to_any_port("127.0.0.1"));
    thread = std::thread([this] { server.listen_after_bind(); });
    while (!server.is_running()) std::this_thread::yield();
  }
  void TearDown() override {
    server.stop();
    thread.join();
  }
  [[nodiscard]] BeastResponse ask(std::string_view key, std::string_view body = "a") const {
    return fetch(port, post("/pay", key, body));
  }

  VirtualClock clock;
  std::shared_ptr<testing::ReferenceStore> store = std::make_shared<testing::ReferenceStore>(clock);
  Guard guard{std::make_shared<IdempotencyService>(store, on_clock(clock))};
  httplib::Server server;
  std::uint16_t port = 0;
  std::thread thread;
  std::atomic<int> runs{0};
  std::atomic<int> status{201};
};

TEST_F(HttplibAdapterTest, TheTableOfStatuses) {
  const BeastResponse first = ask("k");
  EXPECT_EQ(first.result_int(), 201U);
  EXPECT_EQ(first["Set-Cookie"], "s=1");
  EXPECT_EQ(first["Idempotency-Key-TTL"], "86400");
  const BeastResponse replay = ask("\"k\"");
  EXPECT_EQ(replay.result_int(), 201U);
  EXPECT_EQ(replay.body(), "done");
  EXPECT_EQ(replay["Content-Type"], "text/plain");
  EXPECT_EQ(replay["Idempotent-Replayed"], "true");
  EXPECT_EQ(replay.count("Set-Cookie"), 0U);
  EXPECT_EQ(ask("k", "b").result_int(), 422U);
  EXPECT_EQ(ask("").result_int(), 400U);
  BeastRequest twice = post("/pay", "k", "a");
  twice.insert("idempotency-key", "k");
  EXPECT_EQ(fetch(port, twice).result_int(), 400U);
  EXPECT_EQ(runs, 1);
}

TEST_F(HttplibAdapterTest, A500IsTriedAgain) {
  status = 500;
  EXPECT_EQ(ask("k").result_int(), 500U);
  status = 201;
  EXPECT_EQ(ask("k").result_int(), 201U);
  EXPECT_EQ(ask("k")["Idempotent-Replayed"], "true");
  EXPECT_EQ(runs, 2);
}

TEST_F(HttplibAdapterTest, AStoreThatIsAwayIs503) {
  guard.service().shutdown(Micros(0));
  EXPECT_EQ(ask("k").result_int(), 503U);
  EXPECT_EQ(runs, 0);
}

}  // namespace
}  // namespace idem::http
