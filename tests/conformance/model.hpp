// A plain model of the verbs over a std::map: docs/semantics.md once more, in other words than the
// state machine's, with no store and no version in it. Random calls must answer as it does.
#pragma once

#include <map>
#include <string>

#include "idem/clock.hpp"
#include "idem/service.hpp"

namespace idem::conformance {

// The policies that random claims choose from.
enum class Rule { normal, hold, no_retry, capped };
[[nodiscard]] PolicyPatch patch_of(Rule rule);

// Answers as one line of text, without what cannot be foretold (owners, fences).
[[nodiscard]] std::string line(const result<ClaimOutcome>& answer);

class Model {
 public:
  struct Entry {
    std::string body;
    Owner owner;
    std::uint64_t fence = 0;
    std::uint32_t attempt = 1;
    Status status = Status::processing;
    FailKind kind = FailKind::none;
    std::string result;
    Time lease_until{};
    Time retry_at{};
    Time touched{};  // the last claim or renewal
    Time expires{};
    bool held = false;  // claimed under hold
  };

  // What a claim does to the entry: set when the line starts with "claimed".
  struct ClaimAnswer {
    std::string text;
    bool new_fence = false;
  };
  ClaimAnswer claim(const std::string& key, const std::string& body, const Owner& owner, Rule rule,
                    Time now);
  // After a claim was given: its fence, which only the store knows.
  void learn_fence(const std::string& key, std::uint64_t fence) { entries_.at(key).fence = fence; }

  // After a claim of a batch was given: its owner, which the service made.
  void learn_owner(const std::string& key, const Owner& owner) { entries_.at(key).owner = owner; }

  std::string complete(const std::string& key, const Token& token, const std::string& result,
                       Time now);
  std::string fail(const std::string& key, const Token& token, FailKind kind, Micros retry_after,
                   Time now);
  std::string renew(const std::string& key, const Token& token, Micros lease, bool hold, Time now);
  std::string release(const std::string& key, const Token& token, Time now);
  std::string force_release(const std::string& key, std::uint64_t fence, Time now);
  std::string get(const std::string& key, Time now) const;
  std::string sweep(Time now);

 private:
  // The unexpired entry, or nullptr.
  Entry* alive(const std::string& key, Time now);
  [[nodiscard]] static std::string lost(const Entry& entry);

  std::map<std::string, Entry> entries_;
};

}  // namespace idem::conformance
