#include "idem/store_url.hpp"

#include <gtest/gtest.h>

#include "idem/redacted.hpp"

namespace idem {
namespace {

TEST(StoreUrl, ReadsTheFormsOfTheBackends) {
  EXPECT_EQ(StoreUrl::parse("sqlite:relative.db")->path(), "relative.db");
  EXPECT_EQ(StoreUrl::parse("sqlite:dir/relative.db")->path(), "dir/relative.db");
  EXPECT_EQ(StoreUrl::parse("sqlite:///relative.db")->path(), "/relative.db");
  EXPECT_EQ(StoreUrl::parse("sqlite:////absolute.db")->path(), "//absolute.db");
  EXPECT_EQ(StoreUrl::parse("sqlite::memory:")->path(), ":memory:");
  EXPECT_EQ(StoreUrl::parse("sqlite:a%20b%3F.db")->path(), "a b?.db");
  EXPECT_EQ(StoreUrl::parse("memory:")->path(), "");
  auto redis = StoreUrl::parse("redis://user:p%40ss%2F@[::1]:6380/2?prefix=idem%3A").value();
  EXPECT_EQ(redis.user(), "user");
  EXPECT_EQ(redis.password(), "p@ss/");
  EXPECT_EQ(redis.host(), "::1");
  EXPECT_EQ(redis.port(), 6380);
  EXPECT_EQ(redis.path(), "/2");
  EXPECT_EQ(redis.text("prefix"), "idem:");
}

TEST(StoreUrl, SaysHowToWriteAnUnescapedPassword) {
  for (const char* bad :
       {"redis://:a/b+c=@h:6379", "redis://u:p@ss@h/0", "mysql://u:p#1@h/db", "redis://u:p%zz@h/0",
        "no scheme", "", ":x", "redis://h:0/", "redis://h:99999/", "memory:?a=1&a=2", "memory:?=1",
        "redis://u:p w@h/"}) {
    const auto url = StoreUrl::parse(bad);
    ASSERT_TRUE(url.has_error()) << bad;
    EXPECT_EQ(url.error().code, errc::invalid_argument);
    EXPECT_EQ(url.error().message.find("p@ss"), std::string::npos);
  }
  EXPECT_NE(StoreUrl::parse("redis://:a/b+c=@h:6379").error().message.find("%2F"),
            std::string::npos);
}

// S7: a password in a log is a leak.
TEST(StoreUrl, NeverShowsAPassword) {
  EXPECT_EQ(StoreUrl::parse("redis://u:secret@h:1/0")->redacted(), "redis://u:***@h:1/0");
  EXPECT_EQ(StoreUrl::parse("redis://:secret@h")->redacted(), "redis://:***@h");
  EXPECT_EQ(StoreUrl::parse("redis://secret@h")->redacted(), "redis://***@h");
  EXPECT_EQ(StoreUrl::parse("redis://h?passwd=secret")->redacted(), "redis://h?passwd=***");
  for (const char* const url :
       {"tiered:?front=redis%3A%2F%2Fu%3Asecret%2Fa%40h&back=memory%3A",
        "tiered:?front=redis%3A%2F%2Fu%3Asecret%40h%3Ax&back=memory%3A",
        "tiered:?front=tiered%3A%3Ffront%3Dredis%253A%252F%252Fu%253Asecret%2540h%26back%3Da%3A",
        "redis://u:secret/a@h", "redis://u:secret@h:x", "redis://u:secret@h/%zz", "u:secret@h"}) {
    EXPECT_EQ(redacted(url).find("secret"), std::string::npos) << redacted(url);
  }
  EXPECT_EQ(redacted("10s"), "10s");
  EXPECT_EQ(redacted("a:b"), "a:b");
  const auto nested = StoreUrl::parse("tiered:?front=redis%3A%2F%2F%3Asecret%40h&back=memory%3A");
  EXPECT_EQ(nested->redacted().find("secret"), std::string::npos);
  EXPECT_EQ(StoreUrl::parse("redis:/u:secret@h")->redacted(), "redis:***@h");
  EXPECT_EQ(StoreUrl::parse("u:secret@h")->redacted(), "u:***@h");
  EXPECT_EQ(StoreUrl::parse("mysql:///db?password=secret")->redacted(), "mysql:///db?password=***");
}

TEST(StoreUrl, UnknownParametersAreRefusedWithTheNearestName) {
  auto url = StoreUrl::parse("memory:?shrads=4").value();
  EXPECT_EQ(url.count("shards").value(), std::nullopt);
  EXPECT_EQ(url.check_all_known().error().message,
            "unknown parameter 'shrads' for memory:, did you mean 'shards'?");
  auto bad = StoreUrl::parse("memory:?shards=many").value();
  EXPECT_EQ(bad.count("shards").error().message.substr(0, 19), "parameter 'shards':");
}

TEST(Nearest, FindsSwappedMissingAndWrongLettersButNoOtherWord) {
  const std::set<std::string, std::less<>> words = {"bench", "key", "run", "store"};
  EXPECT_EQ(nearest("kye", words), "key");
  EXPECT_EQ(nearest("bnch", words), "bench");
  EXPECT_EQ(nearest("stoer", words), "store");
  EXPECT_EQ(nearest("banana", words), std::nullopt);
}

TEST(Duration, H45TheWrittenForms) {
  EXPECT_EQ(parse_duration("30s").value(), std::chrono::seconds(30));
  EXPECT_EQ(parse_duration("500ms").value(), parse_duration("0.5s").value());
  EXPECT_EQ(parse_duration("1h30m").value(), std::chrono::seconds(5400));
  EXPECT_EQ(parse_duration("7d").value(), std::chrono::hours(168));
  EXPECT_EQ(parse_duration("36525d").value(), kDurationMax);
  for (const char* bad :
       {"", "30", "0s", "-1s", "99999999999999h", "36525d1us", "1e3s", "s", "1m1h", "1s1s",
        "1.2.3s", "30 s", "30S", "nans", "1x", ".s", "0.0000001s"}) {
    EXPECT_FALSE(parse_duration(bad)) << bad;
  }
  EXPECT_EQ(format_duration(std::chrono::milliseconds(5'400'500)), "1h30m500ms");
  EXPECT_EQ(format_duration(Micros(0)), "0s");
}

TEST(Count, TheWrittenForms) {
  EXPECT_EQ(parse_count("64").value(), 64U);
  EXPECT_EQ(parse_count("1M").value(), 1'000'000U);
  EXPECT_EQ(parse_count("4KiB").value(), 4096U);
  for (const char* bad :
       {"", "M", "-1", "1.5M", "1 M", "1mb", "99999999999999999999", "99999999999999999G"}) {
    EXPECT_FALSE(parse_count(bad)) << bad;
  }
}

}  // namespace
}  // namespace idem
