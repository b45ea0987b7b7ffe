#include "expect.hpp"

#include "failure.hpp"
#include "line.hpp"

namespace idem::cli {

namespace {

bool is_rules(const Json& expected) {
  if (!expected.is_object() || expected.empty()) return false;
  const std::string& first = expected.begin().key();
  return first.starts_with('$') || first == "save";
}

// Long values are cut: a difference is for reading.
std::string shown(const Json& value) {
  constexpr std::size_t kShown = 100;
  std::string text = value.dump(-1, ' ', true);
  if (text.size() > kShown) text = text.substr(0, kShown) + "...";
  return text;
}

}  // namespace

std::optional<std::string> Expectations::difference(const Json& expected, const Json& actual) {
  if (!expected.is_object()) throw Failure::usage("'expect' must be an object");
  return compare("", expected, &actual);
}

std::optional<std::string> Expectations::compare(const std::string& path, const Json& expected,
                                                 const Json* actual) {
  if (is_rules(expected)) {
    for (const auto& [rule, operand] : expected.items()) {
      if (holds(rule, operand, actual)) continue;
      return path + ": expected " + shown(expected) +
             (actual == nullptr ? ", is absent" : ", is " + shown(*actual));
    }
    return std::nullopt;
  }
  if (actual == nullptr) return path + ": expected " + shown(expected) + ", is absent";
  if (expected.is_object() && actual->is_object()) return compare_members(path, expected, *actual);
  if (expected.is_array() && actual->is_array()) return compare_elements(path, expected, *actual);
  if (expected == *actual) return std::nullopt;
  return path + ": expected " + shown(expected) + ", is " + shown(*actual);
}

std::optional<std::string> Expectations::compare_members(const std::string& path,
                                                         const Json& expected, const Json& actual) {
  for (const auto& [name, value] : expected.items()) {
    const auto at = actual.find(name);
    std::string inner = path;
    if (!inner.empty()) inner += '.';
    inner += name;
    if (auto found = compare(inner, value, at == actual.end() ? nullptr : &*at)) return found;
  }
  return std::nullopt;
}

std::optional<std::string> Expectations::compare_elements(const std::string& path,
                                                          const Json& expected,
                                                          const Json& actual) {
  if (expected.size() != actual.size())
    return path + ": expected " + std::to_string(expected.size()) + " elements, are " +
           std::to_string(actual.size());
  for (std::size_t i = 0; i < expected.size(); ++i) {
    if (auto found = compare(path + "[" + std::to_string(i) + "]", expected[i], &actual[i]))
      return found;
  }
  return std::nullopt;
}

bool Expectations::holds(const std::string& rule, const Json& operand, const Json* actual) {
  if (rule == "$absent") return (actual == nullptr) == operand.get<bool>();
  if (actual == nullptr) return false;
  if (rule == "save") {
    saved_[operand.get<std::string>()] = *actual;
    return true;
  }
  if (rule == "$pattern") return *actual == pattern(operand.get<std::uint64_t>());
  if (rule == "$same") return saved(operand) == *actual;
  const Json& bound = operand.is_string() ? saved(operand) : operand;
  if (rule == "$gt") return *actual > bound;
  if (rule == "$ge") return *actual >= bound;
  if (rule == "$lt") return *actual < bound;
  if (rule == "$le") return *actual <= bound;
  throw Failure::usage("unknown rule '" + rule + "' in 'expect'");
}

const Json& Expectations::saved(const Json& name) const {
  const auto at = saved_.find(name.get<std::string>());
  if (at == saved_.end()) throw Failure::usage("nothing was saved as " + name.dump());
  return at->second;
}

}  // namespace idem::cli
