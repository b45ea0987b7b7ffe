// A test of an application that embeds the in-memory engine: virtual time, no sleep, no thread.
#include <gtest/gtest.h>

#include <stdexcept>

#include "idem/open.hpp"
#include "idem/service.hpp"
#include "idem/testing/matchers.hpp"

using namespace std::chrono_literals;
using namespace idem::testing;  // NOLINT: the matchers

// [embedded]
TEST(Payment, ACrashedAttemptIsRunAgainOnceItsLeaseIsOver) {
  idem::VirtualClock clock;
  idem::ServiceOptions options;
  options.clock = &clock;
  options.policy.lease = 600s;
  idem::IdempotencyService service(idem::open("memory:", {.clock = &clock}).value(), options);
  const idem::Request request{"k1", idem::Fingerprint::of_bytes("100")};

  { auto crashed = service.claim(request); }  // its process died: nobody reports on it
  EXPECT_THAT(service.claim(request), IsInProgress());
  clock.advance(600s);  // at the lease's end, not after it: the lease is over
  EXPECT_THAT(service.execute(request, [](idem::Attempt&) { return std::string("ok:100"); }),
              ExecutedWith("ok:100"));
  EXPECT_THAT(service.claim(request), ReplayOf("ok:100"));
}
// [/embedded]
