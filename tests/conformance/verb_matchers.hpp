// What the cases of VerbContract include.
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <utility>

#include "idem/conformance/suites.hpp"
#include "idem/testing/fault_store.hpp"
#include "idem/testing/matchers.hpp"
#include "idem/testing/recording_store.hpp"

// Skips a case that counts calls or makes its own faults where faults come by themselves.
#define IDEM_EXACT_ONLY() \
  if (!exact()) GTEST_SKIP() << "missing: a store whose every answer arrives"
