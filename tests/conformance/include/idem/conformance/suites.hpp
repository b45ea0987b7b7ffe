// The fixtures of the five suites. Their cases are in the library; only the macro in
// idem/conformance.hpp needs these names.
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <string_view>

#include "idem/clock.hpp"
#include "idem/conformance/subject.hpp"
#include "idem/service.hpp"

namespace idem::conformance {

// An empty store on a virtual clock.
class StoreCase : public ::testing::TestWithParam<Subject> {
 protected:
  StoreCase();

  [[nodiscard]] IdempotencyStore& store() { return *fixture_.store; }
  [[nodiscard]] const StorePtr& shared_store() { return fixture_.store; }
  [[nodiscard]] VirtualClock& store_clock() { return store_clock_; }
  [[nodiscard]] const Capabilities& capabilities() { return store().capabilities(); }
  // Whether an expired record may be away before anybody sweeps.
  [[nodiscard]] bool frees_by_itself() { return capabilities().frees_by_itself; }
  // A count of expired records: exact, unless some may have gone by themselves.
  void expect_count(std::uint64_t actual, std::uint64_t expected);
  // Every answer of the store arrives: a claim is never repeated, so its kind can be foretold.
  [[nodiscard]] static bool exact() { return !GetParam().loses_answers; }

 private:
  VirtualClock store_clock_;
  Fixture fixture_;
};

// Single items, for readable cases.
class StoreContract : public StoreCase {
 protected:
  Answer insert(KeyRef key, const Draft& draft);
  Answer replace(KeyRef key, std::uint64_t expected, const Draft& draft);
  Answer load(KeyRef key);
  Answer remove(KeyRef key, std::uint64_t expected);
  // The record that must be there.
  Record held(KeyRef key);
};

// A service over the store, whose caller's clock goes with the store's but may be ahead or behind.
class ServiceCase : public StoreCase {
 protected:
  ServiceCase();
  ~ServiceCase() override;

  [[nodiscard]] IdempotencyService& service() { return *service_; }
  // Another one over the same store, with another policy.
  [[nodiscard]] std::unique_ptr<IdempotencyService> service_with(const Policy& policy);
  [[nodiscard]] VirtualClock& caller_clock() { return caller_clock_; }
  // Both clocks.
  void advance(Duration d);

  // `body` stands for the request; its hash is the fingerprint.
  [[nodiscard]] static Request request(std::string_view key, std::string_view body = "body");
  [[nodiscard]] result<ClaimOutcome> claim(std::string_view key, std::string_view body = "body",
                                           const CallOptions& options = {});
  // A claim that must succeed: throws the outcome otherwise.
  [[nodiscard]] Lease claimed(std::string_view key, std::string_view body = "body",
                              const CallOptions& options = {});
  // The record that must be there: throws otherwise.
  [[nodiscard]] Record record(std::string_view key);

 private:
  VirtualClock caller_clock_;
  std::unique_ptr<IdempotencyService> service_;
};

class VerbContract : public ServiceCase {};
class DecisionTable : public ServiceCase {};
class ModelCheck : public ServiceCase {};

// Threads over a store on the machine's clock: nothing is virtual where threads really wait.
class Concurrency : public ::testing::TestWithParam<Subject> {
 protected:
  Concurrency();
  [[nodiscard]] IdempotencyStore& store() { return *fixture_.store; }
  [[nodiscard]] const StorePtr& shared_store() { return fixture_.store; }

 private:
  Fixture fixture_;
};

// Skips the rest of a case.
#define IDEM_NEEDS(capability)    \
  if (!capabilities().capability) \
  GTEST_SKIP() << "missing capability: " #capability " (" << capabilities().backend << ")"

GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(StoreContract);
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(VerbContract);
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(DecisionTable);
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(ModelCheck);
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(Concurrency);

}  // namespace idem::conformance
