#include "expect.hpp"

#include "failure.hpp"
#include "line.hpp"

namespace idem::cli {

namespace {

bool is_rule(const std::string& name) { return name.starts_with('$') || name == "save"; }

bool is_rules(const Json& expected) {
  return expected.is_object() && !expected.empty() && is_rule(expected.begin().key());
}

bool compares_numbers(std::string_view rule) {
  return rule == "$gt" || rule == "$ge" || rule == "$lt" || rule == "$le";
}

void check_operand(const std::string& rule, const Json& operand) {
  const auto need = [&](bool good, const char* wanted) {
    if (!good)
      throw Failure::usage("'" + rule + "' in 'expect' must be " + wanted + ", not " +
                           operand.dump(-1, ' ', true));
  };
  if (rule == "$absent") return need(operand.is_boolean(), "true or false");
  if (rule == "save" || rule == "$same") return need(operand.is_string(), "a name");
  if (rule == "$pattern") {
    need(operand.is_number_unsigned(), "a whole number");
    check_size(rule, operand.get<std::uint64_t>());
    return;
  }
  if (compares_numbers(rule))
    return need(operand.is_number() || operand.is_string(), "a number or the name of a saved one");
  throw Failure::usage("unknown rule '" + rule + "' in 'expect'");
}

// All of it, before any of it is compared: a mistake behind a difference is a mistake.
void check(const Json& expected) {
  if (expected.is_array())
    for (const Json& element : expected) check(element);
  if (!expected.is_object()) return;
  for (const auto& [name, value] : expected.items()) {
    if (is_rule(name) != is_rule(expected.begin().key()))
      throw Failure::usage("'expect' mixes rules and members: '" + name + "' beside '" +
                           expected.begin().key() + "'");
    if (is_rule(name)) {
      check_operand(name, value);
    } else {
      check(value);
    }
  }
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
  if (!expected.is_object() || is_rules(expected))
    throw Failure::usage("'expect' must be an object of members");
  check(expected);
  first_.reset();
  compare("", expected, &actual);
  note_unsaved(expected);
  return first_;
}

void Expectations::differ(const std::string& path, const std::string& how) {
  if (!first_) first_ = path + ": " + how;
}

void Expectations::note_unsaved(const Json& expected) {
  if (expected.is_array())
    for (const Json& element : expected) note_unsaved(element);
  if (!expected.is_object()) return;
  for (const auto& [name, value] : expected.items()) {
    if (name == "save") {
      saved_.try_emplace(value.get<std::string>());
    } else if (!is_rule(name)) {
      note_unsaved(value);
    }
  }
}

void Expectations::compare(const std::string& path, const Json& expected, const Json* actual) {
  if (is_rules(expected)) return compare_rules(path, expected, actual);
  if (actual == nullptr) return differ(path, "expected " + shown(expected) + ", is absent");
  if (expected.is_object() && actual->is_object()) return compare_members(path, expected, *actual);
  if (expected.is_array() && actual->is_array()) return compare_elements(path, expected, *actual);
  if (expected != *actual) differ(path, "expected " + shown(expected) + ", is " + shown(*actual));
}

void Expectations::compare_rules(const std::string& path, const Json& rules, const Json* actual) {
  for (const auto& [rule, operand] : rules.items()) {
    try {
      if (holds(rule, operand, actual)) continue;
    } catch (const Failure& failure) {
      throw Failure::usage(path + ": " + failure.what());
    }
    differ(path, "expected " + shown(rules) +
                     (actual == nullptr ? ", is absent" : ", is " + shown(*actual)));
  }
}

void Expectations::compare_members(const std::string& path, const Json& expected,
                                   const Json& actual) {
  for (const auto& [name, value] : expected.items()) {
    const auto at = actual.find(name);
    std::string inner = path;
    if (!inner.empty()) inner += '.';
    inner += name;
    compare(inner, value, at == actual.end() ? nullptr : &*at);
  }
}

void Expectations::compare_elements(const std::string& path, const Json& expected,
                                    const Json& actual) {
  if (expected.size() != actual.size())
    return differ(path, "expected " + std::to_string(expected.size()) + " elements, are " +
                            std::to_string(actual.size()));
  for (std::size_t i = 0; i < expected.size(); ++i)
    compare(path + "[" + std::to_string(i) + "]", expected[i], &actual[i]);
}

bool Expectations::holds(const std::string& rule, const Json& operand, const Json* actual) {
  if (rule == "$absent") return (actual == nullptr) == operand.get<bool>();
  if (actual == nullptr) return false;
  if (rule == "save") {
    saved_[operand.get<std::string>()] = *actual;
    return true;
  }
  if (rule == "$pattern") return *actual == pattern(operand.get<std::uint64_t>());
  const Json* bound = operand.is_string() ? saved(operand.get<std::string>()) : &operand;
  if (bound == nullptr) return false;
  if (rule == "$same") return *bound == *actual;
  if (!bound->is_number() || !actual->is_number())
    throw Failure::usage("'" + rule + "' compares numbers, not " + shown(*actual) + " with " +
                         shown(*bound));
  if (rule == "$gt") return *actual > *bound;
  if (rule == "$ge") return *actual >= *bound;
  if (rule == "$lt") return *actual < *bound;
  return *actual <= *bound;
}

const Json* Expectations::saved(const std::string& name) const {
  const auto at = saved_.find(name);
  if (at == saved_.end()) throw Failure::usage("nothing was saved as '" + name + "'");
  return at->second ? &*at->second : nullptr;
}

}  // namespace idem::cli
