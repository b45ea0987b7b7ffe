// What threads asked a store, verb by verb of its contract, and whether some order of single steps
// explains all of its answers.
//
// The history checker of tests/linearizability judges the verbs of the service (claim, complete,
// ...). Here it is the contract below: a step of it is one insert, replace, remove or load, with
// every field of the record it answers, versions that grow over removal, and expired records that
// may go at any time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "idem/clock.hpp"
#include "idem/store.hpp"

namespace idem::schedules {

// One call on one key.
struct Call {
  enum class Verb : std::uint8_t { insert, replace, remove, load };
  Verb verb = Verb::load;
  Draft draft;
  std::string result;          // what the draft's result points to
  std::uint64_t expected = 0;  // version
  Answer answer;
  std::uint64_t invoked = 0;  // in the order things happened, over all threads
  std::uint64_t returned = 0;
  Time clock_returned{};  // the store read its clock before
};

// Asks the store and writes it down. For threads of which one runs at a time.
class StoreHistory {
 public:
  StoreHistory(IdempotencyStore& store, const Clock& clock) : store_(store), clock_(clock) {}

  Answer insert(std::string_view key, const Draft& draft);
  Answer replace(std::string_view key, std::uint64_t expected, const Draft& draft);
  Answer remove(std::string_view key, std::uint64_t expected);
  Answer load(std::string_view key);

  // Empty: some order explains every key's calls. Else the calls, for a person to read.
  [[nodiscard]] std::string violation() const;

  [[nodiscard]] std::uint64_t count(Call::Verb verb, Answer::State state) const;
  [[nodiscard]] std::vector<std::string> keys() const;

 private:
  Call& begin(std::string_view key, Call::Verb verb);
  Answer end(Call& call, Answer&& answer);

  IdempotencyStore& store_;
  const Clock& clock_;
  std::uint64_t ticks_ = 0;
  std::map<std::string, std::vector<std::unique_ptr<Call>>, std::less<>> calls_;
};

}  // namespace idem::schedules
