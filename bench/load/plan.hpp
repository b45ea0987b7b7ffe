// The plan of a round: which key each operation names, and which claims crash. Seeded and pure: the
// same workload gives the same plan in every run and build.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "load/workload.hpp"

namespace idem::bench {

// Duplicates repeat one of this many operations before them, as impatient senders do: some meet the
// first attempt still running, some its result.
inline constexpr std::uint32_t kDuplicateWindow = 64;

struct Operation {
  std::uint32_t key = 0;  // a number below Plan::keys
  bool crash = false;     // if this operation wins the claim, it never completes
};

struct Plan {
  std::vector<Operation> operations;
  std::uint32_t keys = 0;
};

// `workload` is valid. Cost: about 20 ns an operation; zipf: two vectors of its count.
[[nodiscard]] Plan make_plan(const Workload& workload);

// SHA-256 over all operations: equal plans, equal text.
[[nodiscard]] std::string plan_hash(const Plan& plan);

}  // namespace idem::bench
