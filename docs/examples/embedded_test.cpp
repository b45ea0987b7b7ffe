// A test of an application that embeds the in-memory engine: virtual time, no sleep, no thread.
#include <gtest/gtest-spi.h>
#include <gtest/gtest.h>

#include <fstream>
#include <stdexcept>

#include "idem/open.hpp"
#include "idem/service.hpp"
#include "idem/testing/matchers.hpp"
#include "idem/testing/story.hpp"

using namespace std::chrono_literals;
using namespace idem::matchers;  // NOLINT
using idem::testing::Kind;
using idem::testing::RetryAfter;
using idem::testing::story;

// [embedded]
TEST(Payment, ACrashedAttemptIsRunAgainOnceItsLeaseIsOver) {
  idem::VirtualClock clock;
  idem::ServiceOptions options;
  options.clock = &clock;
  options.policy.lease = 600s;
  idem::IdempotencyService service(idem::open("memory:", {.clock = &clock}).value(), options);
  const idem::Request request{"k1", idem::Fingerprint::of_bytes("100")};

  { auto crashed = service.claim(request); }  // its process died: nobody reports on it
  EXPECT_THAT(service.claim(request), InProgress());
  clock.advance(600s);  // at the lease's end, not after it: the lease is over
  EXPECT_THAT(service.execute(request, [](idem::Attempt&) { return std::string("ok:100"); }),
              ExecutedWith("ok:100"));
  EXPECT_THAT(service.claim(request), ReplayOf("ok:100"));
}
// [/embedded]

namespace {

class Embedded : public ::testing::Test {
 protected:
  static idem::ServiceOptions options(idem::Clock& clock) {
    idem::ServiceOptions options;
    options.clock = &clock;
    return options;
  }

  idem::VirtualClock clock_;
  idem::IdempotencyService service_{idem::open("memory:", {.clock = &clock_}).value(),
                                    options(clock_)};
  const idem::Request request_{"k1", idem::Fingerprint::of_bytes("100")};
};

}  // namespace

TEST_F(Embedded, EveryAnswerHasItsMatcher) {
  auto first = service_.claim(request_);
  EXPECT_THAT(first, Claimed(Kind(idem::ClaimKind::fresh)));
  EXPECT_THAT(service_.claim(request_), InProgress(RetryAfter(30s)));
  EXPECT_THAT(service_.claim({"k1", idem::Fingerprint::of_bytes("999")}), Mismatch());
  EXPECT_THAT(service_.complete(std::get<idem::Claimed>(*first).lease, "ok:100"), Completed());
  EXPECT_THAT(service_.claim(request_), ReplayOf("ok:100"));
}

// A failed expectation tells what happened, without a debugger.
TEST_F(Embedded, AFailureTellsTheStory) {
  auto first = service_.claim(request_);
  clock_.advance(10s);
  // [story]
  EXPECT_NONFATAL_FAILURE(EXPECT_THAT(service_.claim(request_), Claimed())
                              << story(service_, request_.key),
                          "k1: processing, attempt 1, lease left 20s");
  // [/story]
  EXPECT_THAT(service_.complete(std::get<idem::Claimed>(*first).lease, "ok:100"), Completed());
  EXPECT_NONFATAL_FAILURE(EXPECT_THAT(service_.claim(request_), ReplayOf("ok:200"))
                              << story(service_, request_.key),
                          "k1: success, attempt 1, result \"ok:100\"");
  EXPECT_NONFATAL_FAILURE(EXPECT_THAT(service_.claim(request_), ReplayOf("ok:200")),
                          "replay of \"ok:100\"");
}

// Heartbeats, expiry, waiting: all of it happens in this thread, when the clock is advanced.
TEST_F(Embedded, NeedsNoThread) {
  auto first = service_.claim(request_);
  EXPECT_THAT(service_.wait(request_, 0s), InProgress());
  clock_.advance(24h);
  std::ifstream status("/proc/self/status");
  std::string line;
  while (std::getline(status, line) && line.rfind("Threads:", 0) != 0) {
  }
  EXPECT_EQ(std::stoi(line.substr(8)), 1);
}
