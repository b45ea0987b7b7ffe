// Compares an answer with what a scenario line expects of it.
//
//   "v"                  equal
//   {"$gt": n}           a greater number; also $ge, $lt, $le. n may be the name of a saved number
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
  // The first difference, for a person; nullopt if there is none. Everything is saved that is there
  // to be saved, also behind a difference.
  // A Failure (usage) if `expected` is malformed or compares what cannot be compared: a text with a
  // number, say.
  [[nodiscard]] std::optional<std::string> difference(const Json& expected, const Json& actual);

 private:
  void compare(const std::string& path, const Json& expected, const Json* actual);
  void compare_rules(const std::string& path, const Json& rules, const Json* actual);
  void compare_members(const std::string& path, const Json& expected, const Json& actual);
  void compare_elements(const std::string& path, const Json& expected, const Json& actual);
  [[nodiscard]] bool holds(const std::string& rule, const Json& operand, const Json* actual);
  // nullptr: it would have been saved, had there been no difference.
  [[nodiscard]] const Json* saved(const std::string& name) const;
  void differ(const std::string& path, const std::string& how);
  // Names that `expected` saves and nothing was found for.
  void note_unsaved(const Json& expected);

  std::map<std::string, std::optional<Json>, std::less<>> saved_;
  std::optional<std::string> first_;  // difference of the comparison under way
};

}  // namespace idem::cli
