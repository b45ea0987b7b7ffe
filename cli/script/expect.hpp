// Compares an answer with what a scenario line expects of it.
//
//   "v"                  equal
//   {"$gt": n}           greater; also $ge, $lt, $le. n may be the name of a saved value
//   {"$pattern": n}      the n bytes that NAME_size makes
//   {"$absent": true}    no such member
//   {"$same": "name"}    equal to what was saved under that name
//   {"save": "name"}     anything; saved under that name
//   {...}                an object with at least these members
//   [...]                an array of exactly these elements
#pragma once

#include <map>
#include <optional>
#include <string>

#include "render.hpp"

namespace idem::cli {

class Expectations {
 public:
  // The first difference, for a person; nullopt if there is none. A Failure (usage) if `expected`
  // is malformed.
  [[nodiscard]] std::optional<std::string> difference(const Json& expected, const Json& actual);

 private:
  [[nodiscard]] std::optional<std::string> compare(const std::string& path, const Json& expected,
                                                   const Json* actual);
  [[nodiscard]] std::optional<std::string> compare_members(const std::string& path,
                                                           const Json& expected,
                                                           const Json& actual);
  [[nodiscard]] std::optional<std::string> compare_elements(const std::string& path,
                                                            const Json& expected,
                                                            const Json& actual);
  [[nodiscard]] bool holds(const std::string& rule, const Json& operand, const Json* actual);
  [[nodiscard]] const Json& saved(const Json& name) const;

  std::map<std::string, Json> saved_;
};

}  // namespace idem::cli
