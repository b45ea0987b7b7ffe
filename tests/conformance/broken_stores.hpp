// Stores that break the contract, each in one way that real systems break it. The suite must catch
// every one of them; if it does not, it is the suite that is broken.
#pragma once

#include <functional>
#include <ostream>
#include <string>
#include <vector>

#include "idem/clock.hpp"
#include "idem/store.hpp"

namespace idem::conformance {

struct BrokenStore {
  std::string name;   // "insert_is_check_then_write"
  std::string fault;  // one line: what it does wrong
  std::function<StorePtr(Clock&)> make;
};

inline void PrintTo(const BrokenStore& store, std::ostream* out) { *out << store.fault; }

// The first one is healthy: the reference, dressed like the others.
[[nodiscard]] const std::vector<BrokenStore>& broken_stores();

}  // namespace idem::conformance
