// Logs are read by many: no key, tenant, result or reason may stand in them.
#include "idem/log_observer.hpp"

#include <gmock/gmock.h>

#include "idem/open.hpp"
#include "idem/service.hpp"
#include "idem/testing/matchers.hpp"

namespace idem {
namespace {

using namespace std::chrono_literals;
using namespace testing;  // NOLINT: the matchers
using ::testing::HasSubstr;
using ::testing::Not;

TEST(LogObserver, WritesDigestsAndNeverSecrets) {
  VirtualClock clock;
  std::string log;
  ServiceOptions options;
  options.clock = &clock;
  options.observer = std::make_shared<LogObserver>(
      [&](LogLevel, std::string_view line) { log.append(line).append("\n"); }, LogLevel::debug);
  IdempotencyService service(open("memory:", {.clock = &clock}).value(), options);
  const Key key("secret-tenant", "pay", "secret-key");
  const Request request{key, Fingerprint::of_bytes("b")};

  auto slow = service.claim(request);
  clock.advance(30s);
  auto taken = service.claim(request);
  (void)service.complete(std::get<Claimed>(*slow).lease, "secret-result");
  (void)service.fail(std::get<Claimed>(*taken).lease, FailKind::final, "secret-reason");
  (void)service.claim({Key("secret\n-key"), request.fingerprint});

  const std::string digest = key_digest(key);
  EXPECT_EQ(digest.size(), 8U);
  EXPECT_THAT(log, HasSubstr("idem: claimed key=" + digest + " biz_type=pay kind=fresh fence="));
  EXPECT_THAT(log, HasSubstr("idem: claimed key=" + digest + " biz_type=pay kind=takeover"));
  EXPECT_THAT(log, HasSubstr("idem: lost key=" + digest));
  EXPECT_THAT(log, HasSubstr("idem: failed key=" + digest + " biz_type=pay kind=final"));
  EXPECT_THAT(log, HasSubstr("verb=claim code=invalid_argument"));
  EXPECT_THAT(log, Not(HasSubstr("secret")));
}

TEST(LogObserver, IsQuietAboutTheUsual) {
  std::string log;
  ServiceOptions options;
  options.observer = std::make_shared<LogObserver>([&](LogLevel level, std::string_view line) {
    EXPECT_EQ(level, LogLevel::warning);
    log.append(line);
  });
  IdempotencyService service(open("memory:").value(), options);
  const Request request{"k", Fingerprint::of_bytes("b")};
  EXPECT_THAT(service.execute(request, [](Attempt&) { return std::string("done"); }),
              ExecutedWith("done"));
  EXPECT_EQ(log, "");
  { auto dropped = service.claim({"other", request.fingerprint}); }
  EXPECT_THAT(log, HasSubstr("idem: dropped key=" + key_digest(Key("other"))));
}

}  // namespace
}  // namespace idem
