// Policy hold: nobody but a person ends a lapsed attempt, whatever later calls think.
#include <gtest/gtest.h>

#include "idem/service.hpp"
#include "idem/testing/matchers.hpp"
#include "idem/testing/reference_store.hpp"

namespace idem {
namespace {

using namespace std::chrono_literals;
using namespace testing;  // NOLINT: the matchers

// A renewal by an adopted lease carries the service's default policy, which is takeover.
TEST(Hold, SurvivesARenewalUnderAnotherPolicy) {
  VirtualClock clock;
  ServiceOptions options;
  options.clock = &clock;
  IdempotencyService service(std::make_shared<ReferenceStore>(clock), options);
  const Request request{"k", Fingerprint::of_bytes("k")};
  CallOptions hold;
  hold.policy.on_lapsed = OnLapsed::hold;
  auto claimed = service.claim(request, hold);
  Lease adopted = Lease::adopt(request, std::get<Claimed>(*claimed).lease.token());
  clock.advance(10s);
  EXPECT_THAT(service.renew(adopted), IsRenewed());
  clock.advance(24h);
  EXPECT_THAT(service.sweep(), SweptOf(0, 0));
  EXPECT_THAT(service.claim(request, hold), IsInDoubt());
}

}  // namespace
}  // namespace idem
