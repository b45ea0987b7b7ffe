// The suite over the stores of the test library: the reference itself, a decorator that does
// nothing, and one that loses requests and replies, which the service must resolve.
#include <memory>

#include "idem/conformance.hpp"
#include "idem/testing/fault_store.hpp"
#include "idem/testing/reference_store.hpp"

namespace {

using idem::testing::FaultStore;
using idem::testing::ReferenceStore;

idem::result<idem::Fixture> reference(idem::Clock& clock) {
  return idem::Fixture{"", nullptr, std::make_shared<ReferenceStore>(clock)};
}

idem::result<idem::Fixture> calm(idem::Clock& clock) {
  return idem::Fixture{
      "", nullptr, std::make_shared<FaultStore>(std::make_shared<ReferenceStore>(clock), clock)};
}

idem::result<idem::Fixture> losing(idem::Clock& clock) {
  auto store = std::make_shared<FaultStore>(std::make_shared<ReferenceStore>(clock), clock);
  store->at_random(20240101, {.lose_request = 0.1, .lose_reply = 0.15, .duplicate = 0.1});
  return idem::Fixture{"", nullptr, store};
}

std::vector<idem::conformance::Subject> all() {
  return {{"reference", reference}, {"calm_faults", calm}, {"losing_answers", losing, true}};
}

}  // namespace

IDEM_CONFORMANCE(InProcess, all());
