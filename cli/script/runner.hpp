// Runs the operations of a scenario on one store.
#pragma once

#include <atomic>
#include <map>
#include <optional>
#include <string>
#include <utility>

#include "idem/sequence_guard.hpp"
#include "idem/service.hpp"
#include "line.hpp"

namespace idem::cli {

// Not thread safe. Borrows the clock, and `stop`, which ends a real-time advance.
class ScriptRunner {
 public:
  ScriptRunner(StorePtr store, Clock& clock, const std::atomic<bool>& stop);

  // The answer to one line; what the store or the library refuses is an answer, too. A line that
  // is not an operation is a Failure (usage).
  [[nodiscard]] Json answer(Line& line);

 private:
  // What a caller knows of its attempt on a key.
  struct Attempted {
    Owner owner;
    std::optional<Lease> lease;
  };
  using Operation = Json (ScriptRunner::*)(Line&);
  [[nodiscard]] static const std::map<std::string, Operation, std::less<>>& operations();

  Json claim(Line& line);
  Json complete(Line& line);
  Json fail_attempt(Line& line);
  Json renew(Line& line);
  Json release(Line& line);
  Json get(Line& line);
  Json sweep(Line& line);
  Json list(Line& line);
  Json stats(Line& line);
  Json force_release(Line& line);
  Json force_fail(Line& line);
  Json resolve(Line& line);
  Json claim_many(Line& line);
  Json complete_many(Line& line);
  Json accept(Line& line);
  Json advance(Line& line);

  Attempted& attempted(Line& line, const Key& key);
  // The caller's claim on the line's key; a token that never was if it never got one.
  Lease& lease_of(Line& line);
  [[nodiscard]] std::uint64_t fence_of(Line& line);

  Clock& clock_;
  const std::atomic<bool>& stop_;
  IdempotencyService service_;
  SequenceGuard sequence_;
  std::map<std::pair<std::string, Key>, Attempted> attempts_;
};

}  // namespace idem::cli
