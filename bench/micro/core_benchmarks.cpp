// The parts that every call pays whatever the store: state machine, fingerprint, key.
// One thread each: they share nothing.
#include <benchmark/benchmark.h>

#include <string>

#include "idem/fingerprint.hpp"
#include "idem/key.hpp"
#include "idem/state_machine.hpp"
#include "micro/benchmarks.hpp"
#include "micro/callers.hpp"
#include "micro/keys.hpp"

namespace idem::bench {
namespace {

constexpr Time kNow = kVirtualStart;

Record finished_record() {
  Record record;
  record.request_hash = benchmark_fingerprint();
  record.owner = Owner::random();
  record.version = record.fence = 7;
  record.attempt = 1;
  record.status = Status::success;
  record.expires_at = kNow + std::chrono::hours(24);
  record.result = benchmark_result();
  return record;
}

void claim_of(benchmark::State& state, const Record* held) {
  const Command claim = command::Claim{benchmark_fingerprint(), Owner::random(), Policy{}};
  for ([[maybe_unused]] auto _ : state) benchmark::DoNotOptimize(step(held, claim, kNow));
  state.SetItemsProcessed(state.iterations());
}

void step_claim_absent(benchmark::State& state) { claim_of(state, nullptr); }

void step_claim_replay(benchmark::State& state) {
  const Record held = finished_record();
  claim_of(state, &held);
}

void step_claim_in_progress(benchmark::State& state) {
  Record held = finished_record();
  held.status = Status::processing;
  held.lease_until = kNow + std::chrono::seconds(30);
  claim_of(state, &held);
}

void step_complete(benchmark::State& state) {
  Record held = finished_record();
  held.status = Status::processing;
  held.lease_until = kNow + std::chrono::seconds(30);
  const Command complete =
      command::Complete{held.token(), benchmark_result(), std::chrono::hours(24)};
  for ([[maybe_unused]] auto _ : state) benchmark::DoNotOptimize(step(&held, complete, kNow));
  state.SetItemsProcessed(state.iterations());
}

void fingerprint_bytes(benchmark::State& state) {
  const std::string request(static_cast<std::size_t>(state.range(0)), 'x');
  for ([[maybe_unused]] auto _ : state) benchmark::DoNotOptimize(Fingerprint::of_bytes(request));
  state.SetBytesProcessed(state.iterations() * state.range(0));
}

// An order of so many lines, its members not in order.
void fingerprint_json(benchmark::State& state) {
  std::string request = R"({"order":"ORD-9","lines":[)";
  for (std::int64_t i = 0; i < state.range(0); ++i)
    request += R"({"sku":"A-1042","price":"19.90","count":3},)";
  request += R"({"sku":"end"}],"currency":"CNY"})";
  for ([[maybe_unused]] auto _ : state) benchmark::DoNotOptimize(Fingerprint::of_json(request));
  state.SetBytesProcessed(state.iterations() * static_cast<std::int64_t>(request.size()));
}

void fingerprint_hex(benchmark::State& state) {
  for ([[maybe_unused]] auto _ : state)
    benchmark::DoNotOptimize(Fingerprint::from_hex(benchmark_fingerprint().hex()));
}

void key_check(benchmark::State& state) {
  const KeyBlock keys(1, 1);
  for ([[maybe_unused]] auto _ : state) benchmark::DoNotOptimize(check_key(keys[0]));
}

void key_storage_name(benchmark::State& state) {
  const Key key("tenant-7", "payment", "9b2d6c1e-5f0a-4a83-9d6e-0f1e2d3c4b5a");
  for ([[maybe_unused]] auto _ : state)
    benchmark::DoNotOptimize(parse_storage_name(storage_name(key)));
}

void owner_random(benchmark::State& state) {
  for ([[maybe_unused]] auto _ : state) benchmark::DoNotOptimize(Owner::random());
}

}  // namespace

void register_core_benchmarks() {
  benchmark::RegisterBenchmark("step/claim_absent", step_claim_absent);
  benchmark::RegisterBenchmark("step/claim_replay", step_claim_replay);
  benchmark::RegisterBenchmark("step/claim_in_progress", step_claim_in_progress);
  benchmark::RegisterBenchmark("step/complete", step_complete);
  benchmark::RegisterBenchmark("fingerprint/bytes", fingerprint_bytes)
      ->Arg(64)
      ->Arg(1024)
      ->Arg(65536);
  benchmark::RegisterBenchmark("fingerprint/json_lines", fingerprint_json)->Arg(1)->Arg(25);
  benchmark::RegisterBenchmark("fingerprint/hex_round_trip", fingerprint_hex);
  benchmark::RegisterBenchmark("key/check", key_check);
  benchmark::RegisterBenchmark("key/storage_name_round_trip", key_storage_name);
  benchmark::RegisterBenchmark("owner/random", owner_random);
}

}  // namespace idem::bench
