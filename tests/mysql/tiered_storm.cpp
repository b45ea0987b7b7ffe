// Duplicates while the first attempt runs: refusals per second of redis in front of MariaDB, beside
// MariaDB alone.
//
//   tiered_storm [ROUNDS [MILLISECONDS]]   6 rounds of 700 ms a row by default, interleaved
//
// Not a test: what it prints depends on the machine. 64 blocking callers claim one key that another
// attempt holds. Rows:
//   tiered   through redis + MariaDB
//   alone    through a store on the same MariaDB
//   plain    an INSERT each that the unique key refuses, on 32 connections
#include <algorithm>
#include <cstdlib>

#include "caller.hpp"
#include "idem/tiered_store.hpp"
#include "plain_inserts.hpp"
#include "rates.hpp"
#include "redis_servers.hpp"

namespace idem::mysql_test {
namespace {

using testing::print;
using testing::print_ratio;
using testing::Row;

constexpr std::size_t kCallers = 64;
constexpr std::size_t kConnections = 32;

int run(int rounds, Micros length) {
  const Database database;
  testing::RedisServer redis;
  const StorePtr back = open(database.options());
  const auto store =
      make_tiered_store({testing::open_redis(redis.url()).value(), back, nullptr}).value();
  IdempotencyService tiered(store), alone(back);
  const auto held = tiered.claim(request("held"));
  const auto held_alone = alone.claim(request("held alone"));
  PlainInserts plain(database, kConnections);
  (void)plain.insert("held");
  const auto refused = [](IdempotencyService& service, std::string_view key) {
    const auto outcome = service.claim(request(key));
    return outcome.has_value() && std::holds_alternative<InProgress>(*outcome);
  };
  Row with{"tiered"}, without{"alone"}, bare{"plain"};
  const auto add = [&](Row& row, const auto& ask) {
    const testing::Timer timer(length);
    row.rates.push_back(timer.rate(testing::count_of(kCallers, timer, ask)));
  };
  for (int round = 0; round < rounds; ++round) {
    add(with, [&](std::size_t) { return refused(tiered, "held"); });
    add(without, [&](std::size_t) { return refused(alone, "held alone"); });
    add(bare, [&](std::size_t) { return plain.insert("held") == 1062; });
  }
  for (const Row* row : {&with, &without, &bare}) print(*row);
  print_ratio(with, without);
  print_ratio(with, bare);
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
