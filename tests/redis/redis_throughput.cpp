// Claims per second on one Redis connection, beside redis-benchmark on the same server.
//
//   redis_throughput [SECONDS [ROUNDS [ROW]]]     every row runs for SECONDS (1), interleaved with
//                                                 the others, ROUNDS (6) times; or only that ROW
//
// Not a test: what it prints depends on the machine. Rows:
//   benchmark    redis-benchmark -c 1 -P 64: SET of a new key with NX and PX
//   same command the same, with the command that a claim is: SET … NX GET PX
//   batches      one thread, batches of 64 inserts
//   continuing   64 callers that block no thread: each claim's continuation starts the next one
//   blocking     64 threads, one insert at a time each, on the shared connection
//   own sockets  64 threads, each with a blocking request/reply connection of its own: SET NX PX
#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <deque>
#include <string_view>

#include "idem/clock.hpp"
#include "idem/combiner.hpp"
#include "rates.hpp"
#include "redis_servers.hpp"

namespace idem::testing {
namespace {

constexpr std::size_t kCallers = 64;

Draft draft() {
  Draft draft;
  draft.owner = Owner::random();
  draft.request_hash = Fingerprint::of_bytes("r");
  draft.lease = std::chrono::seconds(30);
  draft.keep = std::chrono::seconds(60);
  return draft;
}

std::atomic<std::uint64_t> next_key{0};

// relaxed: only uniqueness is wanted
Key new_key() { return "key-" + std::to_string(next_key.fetch_add(1, std::memory_order_relaxed)); }

double batches(RedisStore& store, Micros length) {
  std::uint64_t count = 0;
  // What the caller brings is made beforehand, as the other side's is.
  const std::vector<Draft> drafts(kCallers, draft());
  std::vector<Key> keys(kCallers);
  std::vector<Insert> ops(kCallers);
  const Timer timer(length);
  while (!timer.over()) {
    for (std::size_t i = 0; i < kCallers; ++i) {
      keys[i] = new_key();
      ops[i].key = keys[i];
      ops[i].draft = drafts[i];
    }
    store.insert(ops);
    for (const Insert& op : ops) count += op.answer.state == Answer::State::written;
  }
  return timer.rate(count);
}

struct InsertJob : CombinerJob {
  Key key;
  Insert op;
};

double continuing(RedisStore& store, Micros length) {
  std::atomic<std::uint64_t> count{0};
  const Timer timer(length);
  std::vector<InsertJob> jobs(kCallers);
  std::function<void(InsertJob&)> start;
  Combiner combiner({.lanes = 2, .jobs_per_batch = 64},
                    [&](std::size_t, std::span<CombinerJob* const> batch) {
                      std::vector<Insert> ops;
                      for (CombinerJob* job : batch) {
                        ops.push_back(static_cast<InsertJob*>(job)->op);
                      }
                      store.insert(ops);
                      for (const Insert& op : ops)
                        count += op.answer.state == Answer::State::written;
                    });
  const Draft its_draft = draft();
  start = [&](InsertJob& job) {
    if (timer.over()) return;
    job.key = new_key();
    job.op = {job.key, its_draft, {}};
    combiner.submit(job, [&] { start(job); });
  };
  for (InsertJob& job : jobs) start(job);
  while (!timer.over()) system_clock().pause(std::chrono::milliseconds(10));
  return timer.rate(count);
}

double blocking(RedisStore& store, Micros length) {
  const Draft its_draft = draft();
  const Timer timer(length);
  return timer.rate(count_of(kCallers, timer, [&](std::size_t) {
    const Key key = new_key();
    Insert op{key, its_draft, {}};
    store.insert({&op, 1});
    return op.answer.state == Answer::State::written;
  }));
}

double own_sockets(std::uint16_t port, Micros length) {
  std::deque<RawRedis> sockets;
  for (std::size_t i = 0; i < kCallers; ++i) sockets.emplace_back(port);
  const std::string value(139, 'v');
  const Timer timer(length);
  return timer.rate(count_of(kCallers, timer, [&](std::size_t t) {
    return sockets[t]({"SET", new_key().key, value, "NX", "PX", "60000"}).text == "OK";
  }));
}

constexpr double kBenchmarkCalls = 200'000;

double benchmark(std::uint16_t port, const std::string& options) {
  const std::string command = "redis-benchmark -p " + std::to_string(port) +
                              " -c 1 -P 64 -n 200000 -r 1000000000 --csv SET key:__rand_int__ " +
                              std::string(139, 'v') + " " + options;
  FILE* pipe = ::popen(command.c_str(), "r");
  char line[4096];
  double rate = 0;
  while (pipe != nullptr && std::fgets(line, sizeof(line), pipe) != nullptr) {
    const std::string text(line);
    const std::size_t at = text.find("\",\"");
    if (at != std::string::npos) rate = std::max(rate, std::atof(text.c_str() + at + 3));
  }
  if (pipe != nullptr) ::pclose(pipe);
  return rate;
}

int run(Micros length, int rounds, std::string_view only) {
  RedisServer server;
  const auto store = open_redis(server.url()).value();
  const std::uint16_t port = server.port();
  Row bench{"benchmark"}, same{"same command"}, batched{"batches"}, continued{"continuing"},
      blocked{"blocking"}, own{"own sockets"};
  // `calls`: how many of a row that does not go by time.
  const auto measure = [&](Row& row, double calls, auto&& work) {
    if (!only.empty() && only != row.name) return;
    const CpuTime before = cpu_time(server.process().pid());
    const double rate = work();
    if (calls == 0) calls = rate * static_cast<double>(length.count()) * 1e-6;
    row.add(rate, calls, before, cpu_time(server.process().pid()));
    RawRedis(server.port())({"FLUSHALL"});
  };
  for (int round = 0; round < rounds; ++round) {
    measure(bench, kBenchmarkCalls, [&] { return benchmark(port, "NX PX 60000"); });
    measure(same, kBenchmarkCalls, [&] { return benchmark(port, "NX GET PX 660000"); });
    measure(batched, 0, [&] { return batches(*store, length); });
    measure(continued, 0, [&] { return continuing(*store, length); });
    measure(blocked, 0, [&] { return blocking(*store, length); });
    measure(own, 0, [&] { return own_sockets(port, length); });
  }
  for (const Row* row : {&bench, &same, &batched, &continued, &blocked, &own}) print(*row);
  print_ratio(batched, bench);
  print_ratio(batched, same);
  print_ratio(continued, bench);
  print_ratio(blocked, own);
  return 0;
}

}  // namespace
}  // namespace idem::testing

int main(int argc, char** argv) {
  const int seconds = argc > 1 ? std::atoi(argv[1]) : 1;
  const int rounds = argc > 2 ? std::atoi(argv[2]) : 6;
  return idem::testing::run(std::chrono::seconds(std::max(seconds, 1)), std::max(rounds, 1),
                            argc > 3 ? argv[3] : "");
}
