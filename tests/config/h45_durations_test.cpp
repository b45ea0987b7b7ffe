// H45: durations and names in the configuration.
#include <gmock/gmock.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "idem/config.hpp"
#include "idem/testing/matchers.hpp"
#include "idem/testing/reference_store.hpp"

namespace idem {
namespace {

using namespace std::chrono_literals;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::StartsWith;

ConfigSources no_environment() {
  ConfigSources sources;
  sources.environment = [](const std::string&) { return std::optional<std::string>(); };
  return sources;
}

result<Config> load_setting(const std::string& line) {
  return load_config_text("idempotency:\n  " + line + "\n", "idem.yml", no_environment());
}

TEST(H45, DurationsHaveOneMeaning) {
  const auto lease_of = [](const std::string& text) {
    // stuck_after must not be shorter than any of them.
    const auto config =
        load_config_text("idempotency:\n  redis_ttl: " + text + "\n  stuck_after: 2h\n", "idem.yml",
                         no_environment());
    EXPECT_TRUE(config) << config.error().message;
    return config->service.policy.lease.micros();
  };
  EXPECT_EQ(lease_of("30s"), 30'000ms);
  EXPECT_EQ(lease_of("500ms"), 500ms);
  EXPECT_EQ(lease_of("0.5s"), 500ms);
  EXPECT_EQ(lease_of("1h30m"), 5'400s);
  EXPECT_EQ(load_setting("db_timeout_clean_seconds: 600")->service.policy.stuck_after.micros(),
            600s);
}

class H45Refused : public ::testing::TestWithParam<const char*> {};

// The error names the key and its line.
TEST_P(H45Refused, WithKeyAndLine) {
  const std::string line = GetParam();
  const std::string key = line.substr(0, line.find(':'));
  const auto config = load_setting(line);
  ASSERT_FALSE(config) << line;
  EXPECT_EQ(config.error().code, errc::invalid_argument);
  EXPECT_THAT(config.error().message, AllOf(StartsWith("idem.yml:2:"), HasSubstr(key))) << line;
}

INSTANTIATE_TEST_SUITE_P(
    Values, H45Refused,
    ::testing::Values("redis_ttl: 30", "redis_ttl: \"30\"", "redis_ttl: 0s", "redis_ttl: -1s",
                      "redis_ttl: 99999999999999h", "redis_ttl: 5 s", "redis_ttl: 1m1h",
                      "redis_ttl: 30sec", "db_timeout_clean_seconds: 0",
                      "db_timeout_clean_seconds: -1", "db_timeout_clean_seconds: 1e3",
                      "db_timeout_clean_seconds: 600s", "db_timeout_clean_seconds: \"600\"",
                      "db_timeout_clean_seconds: 99999999999999999999",
                      "db_timeout_clean_seconds: 9999999999", "redis_tll: 30s", "result_ttl: 29s"));

TEST(H45, HeaderNamesCompareWithoutCase) {
  const auto config = load_setting("key_header: idempotency-key");
  ASSERT_TRUE(config);
  EXPECT_TRUE(http::same_header(config->http.key_header, "Idempotency-Key"));
  EXPECT_FALSE(http::same_header(config->http.key_header, "Idempotency-Keys"));
}

// "enabled: false" is for the day on which the store must be taken away: everything runs.
TEST(H45, DisabledRunsEveryTimeAndStoresNothing) {
  const auto config = load_setting("enabled: false");
  ASSERT_TRUE(config);
  VirtualClock clock;
  auto store = std::make_shared<testing::ReferenceStore>(clock);
  ServiceOptions options = config->service;
  options.clock = &clock;
  IdempotencyService service(store, options);
  int runs = 0;
  for (int i = 0; i < 3; ++i) {
    const auto done = service.execute({"k1", Fingerprint::of_bytes("r")}, [&](Attempt&) {
      ++runs;
      return std::string("done");
    });
    EXPECT_THAT(done, testing::ExecutedWith("done"));
  }
  EXPECT_EQ(runs, 3);
  EXPECT_EQ(store->stats()->records(), 0U);
}

TEST(H45, AMissingFileIsAnErrorThatNamesIt) {
  ConfigSources sources = no_environment();
  sources.file = "/nonexistent/idem.yml";
  const auto config = load_config(sources);
  ASSERT_FALSE(config);
  EXPECT_EQ(config.error().code, errc::cannot_open);
  EXPECT_EQ(config.error().message, "/nonexistent/idem.yml: error: No such file or directory");
}

// A file that was cut off must not quietly mean "all defaults".
TEST(H45, AnEmptyFileIsAnError) {
  for (const char* text : {"", "\n\n", "# only a comment\n"}) {
    const auto config = load_config_text(text, "idem.yml", no_environment());
    ASSERT_FALSE(config);
    EXPECT_THAT(config.error().message, StartsWith("idem.yml:1:1: error: the file is empty"));
  }
}

TEST(H45, AFileIsRead) {
  const auto path =
      std::filesystem::temp_directory_path() / ("idem-h45-" + std::to_string(::getpid()) + ".yml");
  std::ofstream(path) << "idempotency:\n  redis_ttl: 12s\n";
  ConfigSources sources = no_environment();
  sources.file = path;
  const auto config = load_config(sources);
  std::filesystem::remove(path);
  ASSERT_TRUE(config) << config.error().message;
  EXPECT_EQ(config->service.policy.lease, Duration(12s));
}

}  // namespace
}  // namespace idem
