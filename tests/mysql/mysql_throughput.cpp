// Claims per second on one MariaDB that commits durably, beside plain statements on the same server.
//
//   mysql_throughput [ROUNDS [MILLISECONDS]]   6 rounds of 700 ms a row by default, interleaved
//
// Not a test: what it prints depends on the machine. Rows:
//   combined    64 blocking callers, a claim of a new key each, through one store
//   autocommit  64 blocking callers, a single-row INSERT each, on 32 connections
//   hot keys    8 blocking callers, claims of one finished key: layout clustered, layout articles
//   plain hot   the same duplicates as plain INSERTs that are refused, on 8 connections
#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <cstdio>
#include <cstdlib>
#include <mutex>
#include <thread>
#include <vector>

#include "caller.hpp"

namespace idem::mysql_test {
namespace {

constexpr std::size_t kCallers = 64;
constexpr std::size_t kConnections = 32;
constexpr std::size_t kHotCallers = 8;

std::atomic<std::uint64_t> next_key{0};
// relaxed: only uniqueness is wanted
std::string new_key() {
  return "key-" + std::to_string(next_key.fetch_add(1, std::memory_order_relaxed));
}

// Calls per second of so many threads; `work` says whether it did what it was asked.
template <class Work>
double rate(std::size_t callers, Micros length, Work work) {
  std::atomic<std::uint64_t> count{0};
  std::atomic<std::uint64_t> wrong{0};
  const Time begin = system_clock().now();
  std::vector<std::thread> threads;
  for (std::size_t t = 0; t < callers; ++t) {
    threads.emplace_back([&, t] {
      while (system_clock().now() < begin + length) ++(work(t) ? count : wrong);
    });
  }
  for (std::thread& thread : threads) thread.join();
  if (wrong != 0) std::printf("VOID: %llu wrong answers\n", (unsigned long long)wrong.load());
  return static_cast<double>(count) * 1e6 /
         static_cast<double>((system_clock().now() - begin).count());
}

// A connection for one thread at a time.
class Lent {
 public:
  explicit Lent(const Database& database) {
    for (std::size_t i = 0; i < kConnections; ++i)
      free_.push_back(std::make_unique<Caller>(database));
  }
  template <class Use>
  bool with(Use use) {
    std::unique_lock lock(mutex_);
    returned_.wait(lock, [&] { return !free_.empty(); });
    auto one = std::move(free_.back());
    free_.pop_back();
    lock.unlock();
    const bool done = use(*one);
    lock.lock();
    free_.push_back(std::move(one));
    returned_.notify_one();
    return done;
  }

 private:
  std::mutex mutex_;
  std::condition_variable returned_;
  std::vector<std::unique_ptr<Caller>> free_;
};

std::string insert_sql(std::string_view table, std::string_view key) {
  return "INSERT INTO " + std::string(table) + " VALUES ('', 'pay', '" + std::string(key) +
         "', REPEAT('a', 64), 0, REPEAT('b', 16), 1, 4102444800000000)";
}

struct Row {
  const char* name;
  std::vector<double> rates;
  [[nodiscard]] double median() {
    std::sort(rates.begin(), rates.end());
    return (rates[(rates.size() - 1) / 2] + rates[rates.size() / 2]) / 2;
  }
};

void finish(IdempotencyStore& store) {
  const Answer claimed = insert(store, kKey, claim_of(Owner::random()));
  (void)replace(store, kKey, claimed.held.version, success_of(claimed.held, "paid"));
}

int run(int rounds, Micros length) {
  const Database database;
  const Database articles;
  const StorePtr store = open(database.options(MysqlOptions::Layout::clustered));
  const StorePtr other = open(articles.options(MysqlOptions::Layout::articles));
  finish(*store);
  finish(*other);
  Caller root(database);
  // The article's table, without what only ours has.
  root.run(
      "CREATE TABLE plain (tenant VARBINARY(64) NOT NULL, biz_type VARBINARY(32) NOT NULL, idem_key "
      "VARBINARY(128) NOT NULL, request_hash CHAR(64) CHARACTER SET ascii NOT NULL, status TINYINT "
      "NOT NULL, owner BINARY(16) NOT NULL, attempt INT NOT NULL, expires_at BIGINT NOT NULL, "
      "PRIMARY KEY (tenant, biz_type, idem_key)) ENGINE=InnoDB");
  root.run(insert_sql("plain", "hot"));
  Lent connections(database);
  std::printf("server: %s, flush %s, durability %s\n", store->capabilities().backend.c_str(),
              root.cell("SELECT @@innodb_flush_log_at_trx_commit").c_str(),
              store->capabilities().durability == Durability::power ? "power" : "less");
  std::vector<Row> rows{{"combined", {}}, {"autocommit", {}}, {"hot clustered", {}},
                        {"hot articles", {}}, {"hot plain", {}}};
  const auto hot = [](IdempotencyStore& in) {
    return [&in](std::size_t) {
      return insert(in, kKey, claim_of(Owner::random())).state == Answer::State::stands;
    };
  };
  for (int round = 0; round < rounds; ++round) {
    rows[0].rates.push_back(rate(kCallers, length, [&](std::size_t) {
      const std::string key = new_key();
      return insert(*store, {"", "pay", key}, claim_of(Owner::random())).state ==
             Answer::State::written;
    }));
    rows[1].rates.push_back(rate(kCallers, length, [&](std::size_t) {
      return connections.with(
          [](Caller& caller) { return caller.try_run(insert_sql("plain", new_key())) == 0; });
    }));
    rows[2].rates.push_back(rate(kHotCallers, length, hot(*store)));
    rows[3].rates.push_back(rate(kHotCallers, length, hot(*other)));
    rows[4].rates.push_back(rate(kHotCallers, length, [&](std::size_t) {
      return connections.with(
          [](Caller& caller) { return caller.try_run(insert_sql("plain", "hot")) == 1062; });
    }));
  }
  for (Row& row : rows) {
    const double median = row.median();
    std::printf("%-14s median %8.0f/s   min %8.0f   max %8.0f\n", row.name, median,
                row.rates.front(), row.rates.back());
  }
  std::printf("combined / autocommit            %.2f\n", rows[0].median() / rows[1].median());
  std::printf("hot: clustered / articles        %.2f\n", rows[2].median() / rows[3].median());
  std::printf("hot: clustered / plain duplicate %.2f\n", rows[2].median() / rows[4].median());
  return 0;
}

}  // namespace
}  // namespace idem::mysql_test

int main(int argc, char** argv) {
  const int rounds = argc > 1 ? std::atoi(argv[1]) : 6;
  const int length = argc > 2 ? std::atoi(argv[2]) : 700;
  return idem::mysql_test::run(std::max(rounds, 1),
                               std::chrono::milliseconds(std::max(length, 10)));
}
