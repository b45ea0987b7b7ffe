// A test of an application, with the installed matchers and a virtual clock.
#include <gmock/gmock.h>

#include <idem/open.hpp>
#include <idem/service.hpp>
#include <idem/testing/matchers.hpp>

using namespace idem::matchers;  // NOLINT

TEST(Consumer, ADuplicateGetsTheFirstResult) {
  idem::VirtualClock clock;
  idem::ServiceOptions options;
  options.clock = &clock;
  idem::IdempotencyService service(idem::open("memory:", {.clock = &clock}).value(), options);
  const idem::Request request{"k1", idem::Fingerprint::of_bytes("100")};
  EXPECT_THAT(service.execute(request, [](idem::Attempt&) { return std::string("ok"); }),
              ExecutedWith("ok"));
  EXPECT_THAT(service.claim(request), ReplayOf("ok"));
}
