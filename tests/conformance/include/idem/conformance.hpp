// The suite that every store must pass. Link idem::conformance and write, in one .cpp file:
//
//   #include "idem/conformance.hpp"
//
//   // An empty store of yours on this clock; what it made goes with Fixture::owner.
//   static idem::result<idem::Fixture> my_store(idem::Clock& clock) { ... }
//
//   IDEM_CONFORMANCE(MyStore, my_store);
//
// Suites: StoreContract (idem/store.hpp, item by item), VerbContract (docs/semantics.md through
// IdempotencyService), DecisionTable (every state x verb x token x hash x payload), ModelCheck
// (random calls against a plain model) and Concurrency (racing threads). A case that needs what
// Capabilities denies is skipped and says which capability is missing.
#pragma once

#include "idem/conformance/subject.hpp"
#include "idem/conformance/suites.hpp"

// At global namespace scope, in a .cpp file. Name is an identifier, unique in the program. Then
// either a callable idem::result<idem::Fixture>(idem::Clock&) or a std::vector of Subjects.
#define IDEM_CONFORMANCE(Name, ...)                                                                \
  namespace idem::conformance {                                                                    \
  INSTANTIATE_TEST_SUITE_P(Name, StoreContract, ::testing::ValuesIn(exact(subjects(__VA_ARGS__))), \
                           subject_name);                                                          \
  INSTANTIATE_TEST_SUITE_P(Name, VerbContract, ::testing::ValuesIn(skewed(subjects(__VA_ARGS__))), \
                           subject_name);                                                          \
  INSTANTIATE_TEST_SUITE_P(Name, DecisionTable, ::testing::ValuesIn(subjects(__VA_ARGS__)),        \
                           subject_name);                                                          \
  INSTANTIATE_TEST_SUITE_P(Name, ModelCheck, ::testing::ValuesIn(subjects(__VA_ARGS__)),           \
                           subject_name);                                                          \
  INSTANTIATE_TEST_SUITE_P(Name, Concurrency, ::testing::ValuesIn(subjects(__VA_ARGS__)),          \
                           subject_name);                                                          \
  }                                                                                                \
  static_assert(true, "a semicolon follows")
