// What `idem store doctor` says that no command line can bring about: a clock that is off.
#include <gmock/gmock.h>

#include <string>
#include <vector>

#include "idem/clock.hpp"
#include "idem/open.hpp"
#include "redis_servers.hpp"

namespace idem::testing {
namespace {

using ::testing::HasSubstr;

const Finding* find(const Findings& findings, std::string_view setting) {
  for (const Finding& finding : findings)
    if (finding.setting == setting) return &finding;
  return nullptr;
}

TEST(RedisDoctor, AClockThatIsNinetySecondsOffIsBad) {
  const RedisServer server(std::vector<std::string>{});
  for (const Micros off : {Micros(std::chrono::seconds(90)), Micros(std::chrono::seconds(-90))}) {
    VirtualClock ours(system_clock().now() - off);
    DiagnoseOptions options;
    options.open.clock = &ours;
    const Findings findings = diagnose(server.url(), options);
    const Finding* const clock = find(findings, "clock");
    ASSERT_NE(clock, nullptr);
    EXPECT_EQ(clock->severity, Finding::Severity::bad);
    // The virtual clock stands still meanwhile.
    EXPECT_THAT(clock->what, HasSubstr(off > Micros(0) ? " s ahead" : " s behind"));
    EXPECT_THAT(clock->remedy, HasSubstr("NTP"));
  }
  const Findings findings = diagnose(server.url());
  ASSERT_NE(find(findings, "clock"), nullptr);
  EXPECT_EQ(find(findings, "clock")->severity, Finding::Severity::ok);
}

}  // namespace
}  // namespace idem::testing
