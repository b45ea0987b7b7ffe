// Claims per second on one Redis connection, beside redis-benchmark on the same server.
//
//   redis_throughput [SECONDS]      every row runs for SECONDS (default 1), three times,
//   interleaved
//
// Not a test: what it prints depends on the machine. Rows:
//   benchmark    redis-benchmark -c 1 -P 64: SET of a new key with NX and PX
//   batches      one thread, batches of 64 inserts
//   continuing   64 callers that block no thread: each claim's continuation starts the next one
//   blocking     64 threads, one insert at a time each, on the shared connection
//   own sockets  64 threads, each with a blocking request/reply connection of its own: SET NX PX
#include <sys/resource.h>

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <thread>

#include "idem/clock.hpp"
#include "idem/combiner.hpp"
#include "redis_servers.hpp"

namespace idem::testing {
namespace {

constexpr std::size_t kCallers = 64;

struct Row {
  const char* name;
  std::vector<double> rates;
};

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

// The processor time of this process.
double cpu_us() {
  rusage used{};
  ::getrusage(RUSAGE_SELF, &used);
  return static_cast<double>(used.ru_utime.tv_sec + used.ru_stime.tv_sec) * 1e6 +
         static_cast<double>(used.ru_utime.tv_usec + used.ru_stime.tv_usec);
}

class Timer {
 public:
  explicit Timer(Micros length) : begin_(system_clock().now()), end_(begin_ + length) {}
  [[nodiscard]] bool over() const { return system_clock().now() >= end_; }
  [[nodiscard]] double rate(std::uint64_t count) const {
    std::printf("  %.1f us of this process per claim\n",
                (cpu_us() - cpu_) / static_cast<double>(std::max<std::uint64_t>(count, 1)));
    return static_cast<double>(count) * 1e6 /
           static_cast<double>((system_clock().now() - begin_).count());
  }

 private:
  Time begin_, end_;
  double cpu_ = cpu_us();
};

double batches(RedisStore& store, Micros length) {
  std::uint64_t count = 0;
  const Timer timer(length);
  std::vector<Key> keys(kCallers);
  while (!timer.over()) {
    std::vector<Insert> ops;
    for (Key& key : keys) {
      key = new_key();
      ops.push_back({key, draft(), {}});
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
  start = [&](InsertJob& job) {
    if (timer.over()) return;
    job.key = new_key();
    job.op = {job.key, draft(), {}};
    combiner.submit(job, [&] { start(job); });
  };
  for (InsertJob& job : jobs) start(job);
  while (!timer.over()) system_clock().pause(std::chrono::milliseconds(10));
  return timer.rate(count);
}

template <class Work>
double threads(Micros length, Work work) {
  std::atomic<std::uint64_t> count{0};
  const Timer timer(length);
  std::vector<std::thread> callers;
  for (std::size_t i = 0; i < kCallers; ++i) {
    callers.emplace_back([&] { count += work(timer); });
  }
  for (std::thread& caller : callers) caller.join();
  return timer.rate(count);
}

double blocking(RedisStore& store, Micros length) {
  return threads(length, [&](const Timer& timer) {
    std::uint64_t count = 0;
    while (!timer.over()) {
      const Key key = new_key();
      Insert op{key, draft(), {}};
      store.insert({&op, 1});
      count += op.answer.state == Answer::State::written;
    }
    return count;
  });
}

double own_sockets(std::uint16_t port, Micros length) {
  return threads(length, [&](const Timer& timer) {
    RawRedis redis(port);
    std::uint64_t count = 0;
    const std::string value(139, 'v');
    while (!timer.over()) {
      count += redis({"SET", new_key().key, value, "NX", "PX", "60000"}).text == "OK";
    }
    return count;
  });
}

double benchmark(std::uint16_t port) {
  const std::string command = "redis-benchmark -p " + std::to_string(port) +
                              " -c 1 -P 64 -n 200000 -r 1000000000 --csv SET key:__rand_int__ " +
                              std::string(139, 'v') + " NX PX 60000";
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

int run(Micros length) {
  RedisServer server;
  const auto store = open_redis(server.url()).value();
  std::vector<Row> rows{{"benchmark", {}},
                        {"batches", {}},
                        {"continuing", {}},
                        {"blocking", {}},
                        {"own sockets", {}}};
  for (int round = 0; round < 3; ++round) {
    rows[0].rates.push_back(benchmark(server.port()));
    rows[1].rates.push_back(batches(*store, length));
    rows[2].rates.push_back(continuing(*store, length));
    rows[3].rates.push_back(blocking(*store, length));
    rows[4].rates.push_back(own_sockets(server.port(), length));
    RawRedis(server.port())({"FLUSHALL"});
  }
  for (Row& row : rows) {
    std::sort(row.rates.begin(), row.rates.end());
    std::printf("%-12s median %9.0f/s   min %9.0f   max %9.0f\n", row.name, row.rates[1],
                row.rates[0], row.rates[2]);
  }
  std::printf("batches    / benchmark   %.2f\n", rows[1].rates[1] / rows[0].rates[1]);
  std::printf("continuing / benchmark   %.2f\n", rows[2].rates[1] / rows[0].rates[1]);
  std::printf("blocking   / own sockets %.2f\n", rows[3].rates[1] / rows[4].rates[1]);
  return 0;
}

}  // namespace
}  // namespace idem::testing

int main(int argc, char** argv) {
  const int seconds = argc > 1 ? std::atoi(argv[1]) : 1;
  return idem::testing::run(std::chrono::seconds(std::max(seconds, 1)));
}
