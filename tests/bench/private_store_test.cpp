#include "choose/private_store.hpp"

#include <gtest/gtest.h>

#include "choose/choose.hpp"

namespace idem::bench {
namespace {

struct Setting {
  const char* backend;
  Durability asked;
  Durability found;  // read back from the store itself
};
class PrivateStore : public ::testing::TestWithParam<Setting> {};

TEST_P(PrivateStore, B32_KeepsWhatIsAskedForAsReadBackFromIt) {
  const auto fixture = private_subject(GetParam().backend, GetParam().asked, system_clock()).open();
  if (!fixture && fixture.error().message.find("install") != std::string::npos)
    GTEST_SKIP() << fixture.error().message;
  ASSERT_TRUE(fixture) << fixture.error().message;
  EXPECT_EQ(fixture->store->capabilities().durability, GetParam().found);
}
INSTANTIATE_TEST_SUITE_P(
    Tiers, PrivateStore,
    ::testing::Values(Setting{"memory", Durability::power, Durability::none},
                      Setting{"sqlite", Durability::none, Durability::process},
                      Setting{"sqlite", Durability::process, Durability::process},
                      Setting{"sqlite", Durability::power, Durability::power},
                      Setting{"redis", Durability::none, Durability::none},
                      Setting{"redis", Durability::process, Durability::process},
                      Setting{"redis", Durability::power, Durability::power},
                      Setting{"mysql", Durability::none, Durability::none},
                      Setting{"mysql", Durability::process, Durability::process},
                      Setting{"mysql", Durability::power, Durability::power}));

TEST(Config, NamesTheTierThatWasMeasured) {
  Candidate chosen;
  chosen.store = "redis";
  chosen.durability = Durability::process;
  const std::string text = config_for(chosen, {});
  EXPECT_NE(text.find("min_durability=process"), std::string::npos) << text;
  EXPECT_NE(text.find("appendfsync no"), std::string::npos) << text;
}

}  // namespace
}  // namespace idem::bench
