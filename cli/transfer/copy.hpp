// Records from one store into another, and whether they are alike there.
//
// What a claim's owner and its duplicates go by is kept: request hash, status, result, owner,
// fence, attempt, and how long lease, backoff and record still last. create_time, update_time and
// version begin anew: they belong to the store that wrote them.
#pragma once

#include <functional>
#include <span>
#include <string>
#include <vector>

#include "context.hpp"

namespace idem::cli {

// What is read, held in memory and written at a time: few enough that their times do not age on the
// way.
inline constexpr std::size_t kPortionRecords = 128;
inline constexpr std::size_t kPortionBytes = std::size_t{4} << 20;  // of results; or one record

// Records, and the time of their store when they were read there.
struct Portion {
  std::vector<Listed> items;
  Time now{};
  Time read_at{};  // of the machine's clock: they have aged since
};

// Calls `each` with all unexpired records of the store, a portion at a time.
void each_portion(IdempotencyStore& store, const std::string& from,
                  const std::function<void(Portion&&)>& each);

struct Copied {
  std::uint64_t written = 0;
  std::uint64_t already = 0;          // alike, from an earlier run
  std::uint64_t expired = 0;          // over by now
  std::uint64_t refused = 0;          // another record stands there; it was left alone
  std::vector<std::string> refusals;  // the first ones
};

// Writes what is not there yet. Never overwrites a record that is not over. A Failure if the store
// fails.
void copy_into(IdempotencyStore& target, const std::string& to, const Portion& portion,
               Copied& copied);

struct Compared {
  std::uint64_t equal = 0;
  std::uint64_t all = 0;
  std::vector<std::string> differences;  // the first ones
};

void compare_with(IdempotencyStore& target, const std::string& to, const Portion& portion,
                  Compared& compared);

}  // namespace idem::cli
