// One measurement to a process: rounds of one table at one workload, as one line of JSON.
//   idem_bench_peers --list
//   idem_bench_peers STORE WORKLOAD [threads=2] [records=1000000] [batch=1] [rounds=3] [latency=1]
//                    [fifo=1] [pool=MIB] [seconds=600] [rate=250000]
#include <algorithm>
#include <charconv>
#include <cstdio>
#include <cstdlib>
#include <nlohmann/json.hpp>
#include <string>

#include "peers/page_pool.hpp"
#include "peers/race.hpp"

// Read by jemalloc when it starts: keep what was given back, and give nothing to the system.
extern "C" {
const char* malloc_conf = "dirty_decay_ms:-1,muzzy_decay_ms:-1";
}

namespace idem::bench {

RaceClock& race_clock() {
  static RaceClock clock;
  return clock;
}

const std::array<std::uint8_t, 32>& request_fingerprint() {
  static const std::array<std::uint8_t, 32> kOnce{7, 1, 2, 3};
  return kOnce;
}

namespace {

struct Arguments {
  Plan plan;
  std::size_t rounds = 3;
  std::size_t pool_mib = 0;
};

[[noreturn]] void usage(const std::string& what) {
  std::fprintf(stderr, "bench-peers: %s; see the head of bench/peers/main.cpp\n", what.c_str());
  std::exit(2);
}

void read(Arguments& arguments, std::string_view word) {
  const std::size_t equals = word.find('=');
  if (equals == std::string_view::npos) usage("no NAME=NUMBER: " + std::string(word));
  const std::string_view name = word.substr(0, equals);
  std::size_t number = 0;
  const char* const end = word.data() + word.size();
  const auto [stop, error] = std::from_chars(word.data() + equals + 1, end, number);
  if (error != std::errc() || stop != end) usage("not a number: " + std::string(word));
  if (name == "threads" && number > 0)
    arguments.plan.threads = number;
  else if (name == "records" && number >= arguments.plan.threads)
    arguments.plan.records = number;
  else if (name == "batch" && number > 0 && number <= kBatchMax)
    arguments.plan.batch = number;
  else if (name == "rounds" && number > 0)
    arguments.rounds = number;
  else if (name == "latency")
    arguments.plan.latency = number != 0;
  else if (name == "fifo")
    arguments.plan.fifo = number != 0;
  else if (name == "pool")
    arguments.pool_mib = number;
  else if (name == "seconds" && number > 0)
    arguments.plan.seconds = number;
  else if (name == "rate" && number >= 1000)
    arguments.plan.rate = number;
  else
    usage("unknown or out of range: " + std::string(word));
}

nlohmann::json told(const Round& round, const Plan& plan) {
  nlohmann::json json{{"mops", round.mops}, {"other_cpu", round.other_cpu}, {"held", round.held}};
  if (plan.workload == Workload::memory) {
    json["claimed_bytes"] = round.claimed_bytes;
    json["finished_bytes"] = round.finished_bytes;
  }
  if (plan.workload == Workload::churn) {
    json["resident_least"] = round.resident_least;
    json["resident_most"] = round.resident_most;
  }
  if (round.bytes_after != 0) {
    json["bytes_before"] = round.bytes_before;
    json["bytes_after"] = round.bytes_after;
    json["home_ms"] = round.home_ms;
  }
  if (!plan.latency) return json;
  json["p50_ns"] = *round.latency.quantile(0.5);
  json["p99_ns"] = *round.latency.quantile(0.99);
  json["p999_ns"] = *round.latency.quantile(0.999);
  json["max_ns"] = round.latency.max();
  return json;
}

// Room for the table twice over, results and all.
std::size_t pool_bytes(const Arguments& arguments) {
  if (arguments.pool_mib != 0) return arguments.pool_mib << 20;
  const Workload workload = arguments.plan.workload;
  if (workload == Workload::memory || workload == Workload::churn) return 0;
  return (std::size_t{384} << 20) + arguments.plan.records * 1024;
}

void race(const Racer& racer, const Arguments& arguments) {
  const Requests requests(arguments.plan);
  open_page_pool(pool_bytes(arguments));
  nlohmann::json json{{"store", racer.name},
                      {"workload", name_of(arguments.plan.workload)},
                      {"threads", arguments.plan.threads},
                      {"records", arguments.plan.records},
                      {"batch", arguments.plan.batch}};
  for (std::size_t i = 0; i < arguments.rounds; ++i)
    json["rounds"].push_back(told(racer.run(arguments.plan, requests), arguments.plan));
  json["missed_bytes"] = page_pool_missed_bytes();
  json["peak_bytes"] = peak_resident_bytes();
  std::printf("%s\n", json.dump().c_str());
}

}  // namespace
}  // namespace idem::bench

int main(int count, char** words) {
  using namespace idem::bench;
  const std::vector<Racer> all = racers();
  if (count == 2 && std::string_view(words[1]) == "--list") {
    for (const Racer& racer : all) std::printf("%s\n", racer.name.c_str());
    return 0;
  }
  if (count < 3) usage("which store, which workload?");
  Arguments arguments;
  if (!workload_of(words[2], arguments.plan.workload)) usage("no such workload");
  for (int i = 3; i < count; ++i) read(arguments, words[i]);
  const auto racer = std::find_if(all.begin(), all.end(),
                                  [&](const Racer& known) { return known.name == words[1]; });
  if (racer == all.end()) usage("no such store: --list tells them");
  race(*racer, arguments);
  return 0;
}
