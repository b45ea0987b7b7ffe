#include "micro/threaded.hpp"

#include <utility>

namespace idem::bench {
namespace {

constexpr int kThreadsMax = 8;

}  // namespace

void register_threaded(const std::string& name, std::function<void(benchmark::State&)> body) {
  benchmark::RegisterBenchmark(name.c_str(),
                               [body = std::move(body)](benchmark::State& state) { body(state); })
      ->UseRealTime()
      ->ThreadRange(1, kThreadsMax);
}

}  // namespace idem::bench
