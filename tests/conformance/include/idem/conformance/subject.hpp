// A subject: a way to make empty stores of one sort, and what is known about it beforehand.
#pragma once

#include <gtest/gtest.h>

#include <concepts>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "idem/backend.hpp"

namespace idem::conformance {

struct Subject {
  std::string name;  // letters, digits and _
  std::function<result<Fixture>(Clock&)> make;
  // Answers `unknown` now and then, which the service resolves. What a store alone answers is then
  // not tested, and a claim that was repeated may say `resumed`.
  bool loses_answers = false;
  // How far the caller's clock is ahead of the store's. No answer may depend on it.
  Micros caller_ahead{};
};

template <class Factory>
requires std::invocable<Factory&, Clock&>
[[nodiscard]] std::vector<Subject> subjects(Factory factory) {
  return {Subject{"store", std::move(factory), false, Micros(0)}};
}
[[nodiscard]] inline std::vector<Subject> subjects(std::vector<Subject> several) { return several; }

// Those whose every answer can be foretold.
[[nodiscard]] std::vector<Subject> exact(std::vector<Subject> all);
// Each one three times: the caller's clock right, an hour ahead and an hour behind.
[[nodiscard]] std::vector<Subject> skewed(std::vector<Subject> all);

// For GoogleTest: the name of a case's parameter.
[[nodiscard]] inline std::string subject_name(const ::testing::TestParamInfo<Subject>& info) {
  return info.param.name;
}
void PrintTo(const Subject& subject, std::ostream* out);

// Every variant of every backend of this build: "memory", "sqlite_file" ...
[[nodiscard]] std::vector<Subject> backend_subjects(std::span<const Backend> backends);

}  // namespace idem::conformance
