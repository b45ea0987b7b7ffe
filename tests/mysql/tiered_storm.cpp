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
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <thread>
#include <vector>

#include "caller.hpp"
#include "idem/tiered_store.hpp"
#include "plain_inserts.hpp"
#include "redis_servers.hpp"

namespace idem::mysql_test {
namespace {

constexpr std::size_t kCallers = 64;
constexpr std::size_t kConnections = 32;

struct Row {
  const char* name;
  std::vector<double> rates;
};

// Per second; `ask` says whether it was refused.
template <class Ask>
double rate(Micros length, Ask ask) {
  std::atomic<std::uint64_t> refused{0}, wrong{0};
  const Time begin = system_clock().now();
  std::vector<std::thread> threads;
  for (std::size_t t = 0; t < kCallers; ++t) {
    threads.emplace_back([&] {
      while (system_clock().now() < begin + length) ++(ask() ? refused : wrong);
    });
  }
  for (std::thread& thread : threads) thread.join();
  if (wrong != 0)
    std::printf("VOID: %llu wrong answers\n", static_cast<unsigned long long>(wrong.load()));
  return static_cast<double>(refused) * 1e6 /
         static_cast<double>((system_clock().now() - begin).count());
}

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return (values[(values.size() - 1) / 2] + values[values.size() / 2]) / 2;
}

void tell(const Row& one, const Row& other) {
  std::vector<double> ratios;
  for (std::size_t i = 0; i < one.rates.size(); ++i) {
    ratios.push_back(one.rates[i] / other.rates[i]);
  }
  const auto [least, most] = std::minmax_element(ratios.begin(), ratios.end());
  std::printf("%s / %-6s %.2f   (%.2f to %.2f)\n", one.name, other.name, median(ratios), *least,
              *most);
}

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
  Row with{"tiered", {}}, without{"alone", {}}, bare{"plain", {}};
  for (int round = 0; round < rounds; ++round) {
    with.rates.push_back(rate(length, [&] { return refused(tiered, "held"); }));
    without.rates.push_back(rate(length, [&] { return refused(alone, "held alone"); }));
    bare.rates.push_back(rate(length, [&] { return plain.insert("held") == 1062; }));
  }
  for (const Row* row : {&with, &without, &bare}) {
    const auto [least, most] = std::minmax_element(row->rates.begin(), row->rates.end());
    std::printf("%-7s median %8.0f/s   min %8.0f   max %8.0f\n", row->name, median(row->rates),
                *least, *most);
  }
  tell(with, without);
  tell(with, bare);
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
