// The suite over the broken stores, for broken_stores_test to run: it is meant to fail.
#include "broken_stores.hpp"
#include "idem/conformance.hpp"

namespace {

std::vector<idem::conformance::Subject> all() {
  std::vector<idem::conformance::Subject> made;
  for (const auto& broken : idem::conformance::broken_stores()) {
    made.push_back({broken.name, [make = broken.make](idem::Clock& clock) {
                      return idem::result<idem::Fixture>(idem::Fixture{"", nullptr, make(clock)});
                    }});
  }
  return made;
}

}  // namespace

IDEM_CONFORMANCE(Broken, all());
