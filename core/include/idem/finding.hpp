// What `idem store doctor` finds out about a store's place: one setting, what it is, what to do.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace idem {

struct Finding {
  enum class Severity : std::uint8_t {
    ok,    // as it should be
    warn,  // works, but a person should know
    bad,   // results can be lost, or work can be done twice
  };
  Severity severity = Severity::ok;
  std::string setting;  // as the server or the file calls it: "maxmemory-policy"
  std::string what;     // what was found: "allkeys-lru: evicts live claims"
  std::string remedy;   // what to do, as a command where there is one; "" if ok
};

using Findings = std::vector<Finding>;

}  // namespace idem
