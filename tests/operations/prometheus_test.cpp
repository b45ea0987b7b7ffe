// What Prometheus is told: counters, and never a key.
#include "idem/prometheus.hpp"

#include <gmock/gmock.h>

#include "idem/open.hpp"
#include "idem/testing/matchers.hpp"

namespace idem {
namespace {

using namespace std::chrono_literals;
using namespace testing;  // NOLINT: the matchers
using ::testing::HasSubstr;
using ::testing::Not;

TEST(Prometheus, ShowsEveryCounterAndNoKey) {
  VirtualClock clock;
  ServiceOptions options;
  options.clock = &clock;
  IdempotencyService service(open("memory:", {.clock = &clock}).value(), options);
  Sweeper sweeper(service, {.every = 10s});
  const Request request{Key("tenant-x", "pay", "key-x"), Fingerprint::of_bytes("b")};
  const auto pay = [](Attempt&) { return std::string("result-x"); };
  EXPECT_THAT(service.execute(request, pay), ExecutedWith("result-x"));
  EXPECT_THAT(service.execute(request, pay), ReplayOf("result-x"));
  clock.advance(60s);

  const std::string text = prometheus_text(Collector(service, &sweeper));
  EXPECT_THAT(text, HasSubstr("# TYPE idem_service_total counter"));
  EXPECT_THAT(text, HasSubstr("idem_service_total{event=\"claimed_fresh\"} 1\n"));
  EXPECT_THAT(text, HasSubstr("idem_service_total{event=\"replayed\"} 1\n"));
  EXPECT_THAT(text, HasSubstr("idem_sweeper_total{event=\"errors\"} 0\n"));
  EXPECT_THAT(text, Not(HasSubstr("-x")));
  for (std::size_t i = 0; i < static_cast<std::size_t>(Counter::kCount); ++i) {
    const std::string event(to_string(static_cast<Counter>(i)));
    EXPECT_THAT(text, HasSubstr("{event=\"" + event + "\"}"));
  }
}

}  // namespace
}  // namespace idem
