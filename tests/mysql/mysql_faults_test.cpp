// Servers that are cut off, slow, killed, demoted or full: the H scenarios of a network store.
#include <gmock/gmock.h>

#include <map>
#include <thread>
#include <vector>

#include "idem/service.hpp"
#include "idem/testing/cut_proxy.hpp"
#include "idem/testing/matchers.hpp"
#include "support.hpp"

namespace idem::mysql_test {
namespace {

using State = Answer::State;
using namespace idem::testing;  // NOLINT: matchers

class MysqlFaults : public EachLayout {};
IDEM_EACH_LAYOUT(MysqlFaults);

// --- slow and silent servers -------------------------------------------------------------------

// A reply that comes after its caller gave up must not answer the next question.
TEST_P(MysqlFaults, H41ALateReplyNeverAnswersAnotherQuestion) {
  MysqlOptions options = this->options();
  options.timeout = 150ms;
  options.connections = 2;
  const StorePtr store = open(options);
  for (const std::string_view key : {"A", "B"}) {
    const Answer claimed = insert(*store, {"", "", key}, claim_of(Owner::random()));
    ASSERT_EQ(
        replace(*store, {"", "", key}, claimed.held.version, success_of(claimed.held, key)).state,
        State::written);
  }
  Raw blocker(database().name());
  blocker.run("LOCK TABLES idempotent_record WRITE");
  const Answer unsure = insert(*store, {"", "", "C"}, claim_of(Owner::random()));
  EXPECT_EQ(unsure.error.code, errc::unknown) << unsure.error.message;
  const Answer late = load(*store, {"", "", "A"});
  EXPECT_EQ(late.state, State::failed);
  EXPECT_EQ(late.error.code, errc::unavailable) << late.error.message;
  blocker.run("UNLOCK TABLES");
  ASSERT_TRUE(comes_true([&] { return load(*store, {"", "", "B"}).state == State::stands; }));
  EXPECT_EQ(load(*store, {"", "", "B"}).held.result, "B");
  EXPECT_EQ(load(*store, {"", "", "A"}).held.result, "A");
}

TEST_P(MysqlFaults, H41UnderRandomPausesNoResultComesUnderAWrongKey) {
  constexpr int kKeys = 20;
  MysqlOptions options = this->options();
  const StorePtr patient = open(options);
  options.timeout = 20ms;
  const StorePtr store = open(options);
  for (int k = 0; k < kKeys; ++k) {
    const std::string key = "k" + std::to_string(k);
    const Answer claimed = insert(*patient, {"", "", key}, claim_of(Owner::random()));
    ASSERT_EQ(
        replace(*patient, {"", "", key}, claimed.held.version, success_of(claimed.held, key)).state,
        State::written);
  }
  std::atomic<bool> stop{false};
  std::thread pauser([&] {
    Raw raw(database().name());
    while (!stop) {
      raw.run("LOCK TABLES idempotent_record WRITE");
      raw.run("DO SLEEP(0.03)");
      raw.run("UNLOCK TABLES");
      raw.run("DO SLEEP(0.01)");
    }
  });
  std::atomic<int> wrong{0};
  std::atomic<int> right{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < 8; ++t) {
    threads.emplace_back([&, t] {
      for (int i = 0; i < 150; ++i) {
        const std::string key = "k" + std::to_string((i * 7 + t) % kKeys);
        const Answer answer = load(*store, {"", "", key});
        if (answer.state == State::stands) ++(answer.held.result == key ? right : wrong);
        if (answer.state == State::absent) ++wrong;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  stop = true;
  pauser.join();
  EXPECT_EQ(wrong, 0);
  EXPECT_GT(right, 0);
}

// --- idle, killed, restarted, demoted ----------------------------------------------------------

// The server may close what was idle: the first claim after it must work all the same.
TEST_P(MysqlFaults, H44AfterIdlingTheFirstClaimWorks) {
  Raw root;
  root.run("SET GLOBAL wait_timeout = 1");
  IdempotencyService service(open(options()));
  ASSERT_THAT(service.claim(request("before")), IsClaimed());
  // Whatever a proxy or an administrator does to idle connections.
  for (std::string id;
       !(id = root.cell("SELECT id FROM information_schema.processlist WHERE db = '" +
                        database().name() + "' LIMIT 1"))
            .empty();)
    (void)root.try_run("KILL " + id);
  EXPECT_THAT(service.claim(request("after")), IsClaimed());
  root.run("SET GLOBAL wait_timeout = DEFAULT");
}

// A user that may have two connections: the store goes on with what it gets.
TEST_P(MysqlFaults, TooManyConnectionsIsNoReasonToFail) {
  Raw root;
  const std::string user = "few" + Owner::random().hex().substr(0, 8);
  root.run("CREATE USER " + user + "@localhost WITH MAX_USER_CONNECTIONS 2");
  root.run("GRANT ALL ON " + database().name() + ".* TO " + user + "@localhost");
  MysqlOptions options = this->options();
  options.user = user;
  options.connections = 8;
  {
    const StorePtr store = open(options);
    std::vector<std::thread> threads;
    for (int t = 0; t < 8; ++t) {
      threads.emplace_back([&, t] {
        for (int i = 0; i < 20; ++i) {
          const std::string key = std::to_string(t) + "/" + std::to_string(i);
          const Answer answer = insert(*store, {"", "", key}, claim_of(Owner::random()));
          EXPECT_EQ(answer.state, State::written) << answer.error.message;
        }
      });
    }
    for (std::thread& thread : threads) thread.join();
  }
  root.run("DROP USER " + user + "@localhost");
}

// A demoted server refuses writes: said so at once, and forgotten as soon as it takes them again.
TEST_P(MysqlFaults, H44AReadOnlyServerIsUnavailableUntilItIsNot) {
  Raw root;
  const std::string user = "plain" + Owner::random().hex().substr(0, 8);
  root.run("CREATE USER " + user + "@localhost");
  root.run("GRANT ALL ON " + database().name() + ".* TO " + user + "@localhost");
  MysqlOptions options = this->options();
  options.user = user;
  {
    const StorePtr store = open(options);
    ASSERT_EQ(insert(*store, kKey, claim_of(Owner::random())).state, State::written);
    root.run("SET GLOBAL read_only = 1");
    const Answer refused = insert(*store, {"", "", "new"}, claim_of(Owner::random()));
    EXPECT_EQ(refused.error.code, errc::unavailable) << refused.error.message;
    EXPECT_EQ(load(*store, kKey).state, State::stands);
    root.run("SET GLOBAL read_only = 0");
    const Time back = system_clock().now();
    EXPECT_TRUE(comes_true([&] {
      return insert(*store, {"", "", "new"}, claim_of(Owner::random())).state == State::written;
    }));
    EXPECT_LT(system_clock().now() - back, Micros(2s));
  }
  root.run("DROP USER " + user + "@localhost");
}

// A server of its own, to be killed: eight workers claim and complete all the while.
class MysqlRestarts : public ::testing::Test {
 protected:
  void SetUp() override {
    auto started = ServerFixture::mariadb();
    ASSERT_TRUE(started) << started.error().message;
    server_ = std::move(*started);
    database_ = std::make_unique<Database>(*server_, "");
    store_ = open(database_->options());
    service_ = std::make_unique<IdempotencyService>(store_);
    for (int t = 0; t < kThreads; ++t) workers_.emplace_back([this, t] { work(t); });
  }
  void TearDown() override {
    stop_ = true;
    for (std::thread& worker : workers_) worker.join();
    service_.reset();
    store_.reset();
    database_.reset();
  }

  // Claims and completes new keys; remembers what was acknowledged.
  void work(int thread) {
    for (int i = 0; !stop_; ++i) {
      const std::string key = std::to_string(thread) + "-" + std::to_string(i);
      auto outcome = service_->claim(request(key));
      if (!outcome) {
        system_clock().pause(1ms);  // as a caller that tries again
        continue;
      }
      if (auto* claimed = std::get_if<Claimed>(&*outcome)) {
        auto done = service_->complete(claimed->lease, key);
        if (done && std::holds_alternative<Completed>(*done)) {
          ++acknowledged_;
          const std::lock_guard lock(mutex_);
          results_[key] = key;
        }
      } else {
        ++wrong_;  // nobody else has these keys
      }
    }
  }

  [[nodiscard]] bool goes_on(int count = 1) {
    const int before = acknowledged_;
    return comes_true([&] { return acknowledged_ >= before + count; });
  }

  // Acknowledged results that are gone or changed.
  [[nodiscard]] int lost() {
    const std::lock_guard lock(mutex_);
    int count = 0;
    for (const auto& [key, result] : results_) {
      const Answer held = load(*store_, {"", "", key});
      if (held.state != State::stands || held.held.result != result) ++count;
    }
    return count;
  }

  static constexpr int kThreads = 8;
  std::unique_ptr<ServerFixture> server_;
  std::unique_ptr<Database> database_;
  StorePtr store_;
  std::unique_ptr<IdempotencyService> service_;
  std::vector<std::thread> workers_;
  std::atomic<bool> stop_{false};
  std::atomic<int> acknowledged_{0};
  std::atomic<int> wrong_{0};
  std::mutex mutex_;
  std::map<std::string, std::string> results_;
};

TEST_F(MysqlRestarts, KilledUnderLoadTheServerLosesNothingAcknowledged) {
  const int rounds = nightly() ? 30 : 3;
  for (int round = 0; round < rounds; ++round) {
    ASSERT_TRUE(goes_on(300));
    server_->process().kill();
    auto started = server_->process().start();
    ASSERT_TRUE(started) << started.error().message;
    const Time ready = system_clock().now();
    ASSERT_TRUE(goes_on());
    EXPECT_LT(system_clock().now() - ready, Micros(2s)) << "round " << round;
  }
  stop_ = true;
  for (std::thread& worker : workers_) worker.join();
  workers_.clear();
  EXPECT_EQ(lost(), 0);
  EXPECT_EQ(wrong_, 0);
  std::printf("acknowledged: %d, rounds: %d\n", acknowledged_.load(), rounds);
}

TEST_F(MysqlRestarts, H44AStoppedServerIsAskedRarelyAndUsedAgainSoon) {
  // Stands where the server is, and counts who comes.
  CutProxy proxy(server_->port());
  MysqlOptions options = database_->options();
  options.socket.clear();
  options.port = proxy.port();
  IdempotencyService counted(open(options));
  std::atomic<int> claimed{0};
  std::atomic<int> doubled{0};
  std::vector<std::thread> callers;
  for (int t = 0; t < kThreads; ++t) {
    callers.emplace_back([&, t] {
      for (int i = 0; !stop_; ++i) {
        const auto outcome = counted.claim(request("c" + std::to_string(t * 1'000'000 + i)));
        if (!outcome) system_clock().pause(1ms);
        if (outcome && std::holds_alternative<Claimed>(*outcome)) ++claimed;
        if (outcome && !std::holds_alternative<Claimed>(*outcome)) ++doubled;
      }
    });
  }
  EXPECT_TRUE(comes_true([&] { return claimed > 50; }));
  server_->process().stop();
  const std::uint64_t before = proxy.accepted();
  system_clock().pause(2s);
  const std::uint64_t attempts = proxy.accepted() - before;
  EXPECT_GE(attempts, 1U);
  EXPECT_LE(attempts, 12U) << "of all connections together, and none at once with another";
  EXPECT_TRUE(server_->process().start());
  const Time ready = system_clock().now();
  const int then = claimed;
  EXPECT_TRUE(comes_true([&] { return claimed > then; }));
  EXPECT_LT(system_clock().now() - ready, Micros(2s));
  EXPECT_TRUE(goes_on());
  stop_ = true;
  for (std::thread& caller : callers) caller.join();
  EXPECT_EQ(doubled, 0);
  std::printf("attempts to connect in 2 s: %llu\n", static_cast<unsigned long long>(attempts));
}

// A frozen server has an open port and no answer: every call ends, and nothing is told as done.
TEST_F(MysqlRestarts, AFrozenServerIsNotWaitedFor) {
  ASSERT_TRUE(goes_on());
  server_->process().freeze();
  MysqlOptions options = database_->options();
  options.timeout = 200ms;
  const Time begin = system_clock().now();
  EXPECT_EQ(open_mysql(options).error().code, errc::unavailable);
  EXPECT_LT(system_clock().now() - begin, Micros(3s));
  server_->process().thaw();
  EXPECT_TRUE(goes_on());
}

}  // namespace
}  // namespace idem::mysql_test
