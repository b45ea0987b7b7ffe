// The groups of benchmarks; main() registers them all.
#pragma once

namespace idem::bench {

void register_store_benchmarks();
void register_core_benchmarks();

}  // namespace idem::bench
