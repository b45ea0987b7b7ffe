// The only way to register a benchmark of a store: by wall clock, with one row for each number of
// threads. Divided by processor time a call that blocks would look hundreds of times too fast.
// A test in tests/bench refuses any other mention of threads in this folder.
#pragma once

#include <benchmark/benchmark.h>

#include <functional>
#include <string>

namespace idem::bench {

// 1, 2, 4 and 8 threads, UseRealTime.
void register_threaded(const std::string& name, std::function<void(benchmark::State&)> body);

}  // namespace idem::bench
