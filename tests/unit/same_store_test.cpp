// Two names of one store: copying it onto itself, or putting it in front of itself, is refused.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "idem/open.hpp"

namespace idem {
namespace {

TEST(SameStore, IsSeenHoweverItIsWritten) {
  const std::string here = std::filesystem::current_path().string();
  EXPECT_TRUE(same_store("sqlite:t.db", "sqlite:t.db"));
  EXPECT_TRUE(same_store("sqlite:t.db", "sqlite:./t.db"));
  EXPECT_TRUE(same_store("sqlite:t.db", "sqlite:///x/../t.db?synchronous=normal"));
  EXPECT_TRUE(same_store("sqlite:t.db", "sqlite:///" + here + "/t.db"));
  EXPECT_TRUE(same_store("redis://h", "redis://u:pw@h:6379/0?timeout=2s"));
  EXPECT_TRUE(same_store("redis://localhost", "redis://127.0.0.1"));
  EXPECT_TRUE(same_store("mysql://u@h/db", "mariadb://v:pw@h:3306/db?table=idempotent_record"));
}

TEST(SameStore, IsNotWhatOnlyLooksAlike) {
  EXPECT_FALSE(same_store("sqlite:t.db", "sqlite:u.db"));
  EXPECT_FALSE(same_store("redis://h/0", "redis://h/1"));
  EXPECT_FALSE(same_store("redis://h?prefix=a:", "redis://h?prefix=b:"));
  EXPECT_FALSE(same_store("redis://h:1", "redis://h:2"));
  EXPECT_FALSE(same_store("mysql://u@h/db?table=a", "mysql://u@h/db?table=b"));
  EXPECT_FALSE(same_store("mysql://u@h/db", "redis://h"));
  EXPECT_FALSE(same_store("memory:", "memory:?shards=2"));
}

TEST(SameStore, IsNoFrontOfItself) {
  const auto store = open("tiered:?front=sqlite%3At.db&back=sqlite%3A.%2Ft.db");
  ASSERT_FALSE(store.has_value());
  EXPECT_EQ(store.error().code, errc::invalid_argument);
  EXPECT_THAT(store.error().message, ::testing::HasSubstr("the same store"));
  EXPECT_FALSE(std::filesystem::exists("t.db"));
}

TEST(Schema, IsThatOfTheUrl) {
  for (const Backend& backend : backends()) {
    if (backend.name != "mysql") continue;
    const auto text = [&](std::string_view url) {
      return backend.schema(StoreUrl::parse(url).value()).value();
    };
    EXPECT_THAT(text("mysql://u@h/db"), ::testing::Not(::testing::HasSubstr("uk_idem_key")));
    const std::string articles = text("mysql://u@h/db?layout=articles&table=mine");
    EXPECT_THAT(articles, ::testing::HasSubstr("uk_idem_key"));
    EXPECT_THAT(articles, ::testing::HasSubstr("mine"));
  }
}

}  // namespace
}  // namespace idem
