// Claims per second on one MariaDB that commits durably, beside plain statements on the same
// server.
//
//   mysql_throughput [ROUNDS [MILLISECONDS [CONNECTIONS [ROW]]]]
//
// 6 rounds of 700 ms a row by default, interleaved; the stores have CONNECTIONS (0: their default).
// Or only that ROW.
//
// Not a test: what it prints depends on the machine. Rows:
//   combined        64 blocking callers, a claim of a new key each, through one store
//   autocommit      64 blocking callers, a prepared single-row INSERT each, on 32 connections
//   ready N         N connections, each with ready INSERTs of 64 such claims, and nothing of ours:
//                   what the server can do
//   hot LAYOUT      8 blocking callers, claims of one finished key through a store of that layout
//   refused LAYOUT  8 connections, INSERTs of one key into a table of that layout: duplicates as a
//                   store would meet them that never reads first
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <deque>
#include <fstream>
#include <string_view>
#include <thread>
#include <vector>

#include "caller.hpp"
#include "plain_inserts.hpp"
#include "rates.hpp"

namespace idem::mysql_test {
namespace {

constexpr std::size_t kCallers = 64;
constexpr std::size_t kConnections = 32;
constexpr std::size_t kHotCallers = 8;
constexpr std::size_t kReadyRows = 64;

std::atomic<std::uint64_t> next_key{0};
// relaxed: only uniqueness is wanted
std::string new_key() {
  return "key-" + std::to_string(next_key.fetch_add(1, std::memory_order_relaxed));
}

// The processor time of this process and of the server, in µs. On a machine that others use, too,
// it says more than the rate.
double cpu_us() {
  rusage used{};
  ::getrusage(RUSAGE_SELF, &used);
  const auto us = [](const timeval& time) {
    return static_cast<double>(time.tv_sec) * 1e6 + static_cast<double>(time.tv_usec);
  };
  std::ifstream stat("/proc/" + std::to_string(server().process().pid()) + "/stat");
  std::string field;
  double ticks = 0;
  for (int i = 1; i <= 15 && stat >> field; ++i) {
    if (i >= 14) ticks += std::stod(field);  // utime, stime
  }
  return us(used.ru_utime) + us(used.ru_stime) +
         ticks * 1e6 / static_cast<double>(::sysconf(_SC_CLK_TCK));
}

struct CostedRow : testing::Row {
  std::vector<double> cpu{};  // by round: µs per call
};

// Of so many threads; `work` says how many calls it did as it was asked.
template <class Work>
void measure(CostedRow& row, std::size_t callers, Micros length, Work work) {
  const double cpu = cpu_us();
  const testing::Timer timer(length);
  const std::size_t calls = testing::count_of(callers, timer, work);
  row.rates.push_back(timer.rate(calls));
  row.cpu.push_back((cpu_us() - cpu) / static_cast<double>(std::max<std::size_t>(calls, 1)));
}

void finish(IdempotencyStore& store) {
  const Answer claimed = insert(store, kKey, claim_of(Owner::random()));
  (void)replace(store, kKey, claimed.held.version, success_of(claimed.held, "paid"));
}

int run(int rounds, Micros length, std::size_t connections, std::string_view only) {
  const Database database;
  const Database articles;
  const auto open_with = [&](MysqlOptions options) {
    if (connections != 0) options.connections = connections;
    return open(options);
  };
  const StorePtr store = open_with(database.options(MysqlOptions::Layout::clustered));
  const StorePtr other = open_with(articles.options(MysqlOptions::Layout::articles));
  finish(*store);
  finish(*other);
  Caller root(database);
  PlainInserts plain(database, kConnections);
  PlainInserts plain_articles(database, kHotCallers, MysqlOptions::Layout::articles);
  std::deque<ReadyBatches> ready;
  for (int i = 0; i < 2; ++i) {
    ready.emplace_back(database, kReadyRows, database.options().table);
  }
  (void)plain.insert("hot");
  (void)plain_articles.insert("hot");
  std::printf("server: %s, flush %s, durability %s\n", store->capabilities().backend.c_str(),
              root.cell("SELECT @@innodb_flush_log_at_trx_commit").c_str(),
              store->capabilities().durability == Durability::power ? "power" : "less");
  std::vector<CostedRow> rows;
  for (const char* const name : {"combined", "autocommit", "hot clustered", "hot articles",
                                 "refused clustered", "refused articles", "ready 1", "ready 2"})
    rows.push_back({{name}});
  const auto refused = [](PlainInserts& in) {
    return [&in](std::size_t) { return in.insert("hot") == 1062; };
  };
  const auto hot = [](IdempotencyStore& in) {
    return [&in](std::size_t) {
      return insert(in, kKey, claim_of(Owner::random())).state == Answer::State::stands;
    };
  };
  const auto send = [](std::deque<ReadyBatches>& on) {
    return [&on](std::size_t t) -> std::size_t {
      std::vector<std::string> keys(kReadyRows);
      for (std::string& key : keys) key = new_key();
      return on[t].insert(keys) == 0 ? kReadyRows : 0;
    };
  };
  const auto add = [&](CostedRow& row, std::size_t callers, const auto& work) {
    if (only.empty() || only == row.name) measure(row, callers, length, work);
  };
  for (int round = 0; round < rounds; ++round) {
    add(rows[0], kCallers, [&](std::size_t) {
      const std::string key = new_key();
      return insert(*store, {"", "pay", key}, claim_of(Owner::random())).state ==
             Answer::State::written;
    });
    add(rows[1], kCallers, [&](std::size_t) { return plain.insert(new_key()) == 0; });
    add(rows[2], kHotCallers, hot(*store));
    add(rows[3], kHotCallers, hot(*other));
    add(rows[4], kHotCallers, refused(plain));
    add(rows[5], kHotCallers, refused(plain_articles));
    add(rows[6], 1, send(ready));
    add(rows[7], 2, send(ready));
  }
  for (const CostedRow& row : rows) {
    if (row.rates.empty()) continue;
    print(row);
    std::printf("%42.1f us of processor time\n", bench::summarize(row.cpu).median);
  }
  print_ratio(rows[0], rows[1]);
  print_ratio(rows[0], rows[6]);
  print_ratio(rows[2], rows[3]);
  print_ratio(rows[4], rows[5]);
  return 0;
}

}  // namespace
}  // namespace idem::mysql_test

int main(int argc, char** argv) {
  const int rounds = argc > 1 ? std::atoi(argv[1]) : 6;
  const int length = argc > 2 ? std::atoi(argv[2]) : 700;
  return idem::mysql_test::run(std::max(rounds, 1), std::chrono::milliseconds(std::max(length, 10)),
                               argc > 3 ? static_cast<std::size_t>(std::atoi(argv[3])) : 0,
                               argc > 4 ? argv[4] : "");
}
