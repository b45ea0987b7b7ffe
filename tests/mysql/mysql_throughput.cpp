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
//   inside LAYOUT   the same INSERTs, 500 of them inside one compound statement on one connection:
//                   what refusing costs the server, without its round trips
#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <deque>
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
constexpr std::size_t kInsideRows = 500;

std::atomic<std::uint64_t> next_key{0};
// relaxed: only uniqueness is wanted
std::string new_key() {
  return "key-" + std::to_string(next_key.fetch_add(1, std::memory_order_relaxed));
}

using testing::Row;

// Of so many threads; `work` says how many calls it did as it was asked.
template <class Work>
void measure(Row& row, std::size_t callers, Micros length, Work work) {
  const pid_t mariadb = server().process().pid();
  const testing::CpuTime before = testing::cpu_time(mariadb);
  const testing::Timer timer(length);
  const std::size_t calls = testing::count_of(callers, timer, work);
  const double rate = timer.rate(calls);
  row.add(rate, static_cast<double>(std::max<std::size_t>(calls, 1)), before,
          testing::cpu_time(mariadb));
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
  std::vector<Row> rows;
  for (const char* const name :
       {"combined", "autocommit", "hot clustered", "hot articles", "refused clustered",
        "refused articles", "ready 1", "ready 2", "inside clustered", "inside articles"})
    rows.push_back({name});
  const auto refused = [](PlainInserts& in) {
    return [&in](std::size_t) { return in.insert("hot") == 1062; };
  };
  const auto inside = [](PlainInserts& in) {
    return
        [&in](std::size_t) { return in.refuse_inside("hot", kInsideRows) == 0 ? kInsideRows : 0; };
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
  const auto add = [&](Row& row, std::size_t callers, const auto& work) {
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
    add(rows[8], 1, inside(plain));
    add(rows[9], 1, inside(plain_articles));
  }
  for (const Row& row : rows) print(row);
  print_ratio(rows[0], rows[1]);
  print_ratio(rows[0], rows[6]);
  print_ratio(rows[2], rows[3]);
  print_ratio(rows[4], rows[5]);
  print_ratio(rows[8], rows[9]);
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
