#include "idem/key.hpp"

#include <gtest/gtest.h>

#include <set>

namespace idem {
namespace {

std::string repeated(std::string_view piece, int times) {
  std::string text;
  for (int i = 0; i < times; ++i) text += piece;
  return text;
}

bool accepted(const std::string& key) { return check_key(Key(key)).has_value(); }

// H16: a key that is cut or folded somewhere makes two payments one.
TEST(Key, H16OnlyBytesInRangeOfValidTextAreAccepted) {
  EXPECT_TRUE(accepted("k"));
  EXPECT_TRUE(accepted(std::string(127, 'k')));
  EXPECT_TRUE(accepted(std::string(128, 'k')));
  EXPECT_FALSE(accepted(std::string(129, 'k')));
  EXPECT_FALSE(accepted(std::string(4096, 'k')));
  EXPECT_FALSE(accepted(""));
  EXPECT_FALSE(accepted("   "));
  EXPECT_FALSE(accepted("\xC2\xA0\xE3\x80\x80"));  // no-break space, ideographic space
  EXPECT_TRUE(accepted(" k "));
  EXPECT_FALSE(accepted("a\r\nb"));
  EXPECT_FALSE(accepted(std::string("a\0b", 3)));
  EXPECT_FALSE(accepted("a\x7F"));
  EXPECT_FALSE(accepted("a\xC2\x85"));  // U+0085, a C1 control
  EXPECT_FALSE(accepted("\xC3\x28"));
  EXPECT_FALSE(accepted("\xC0\xAF"));          // overlong
  EXPECT_FALSE(accepted("\xED\xA0\x80"));      // surrogate
  EXPECT_FALSE(accepted("\xF4\x90\x80\x80"));  // above U+10FFFF
  EXPECT_FALSE(accepted("\xE4\xB8"));          // cut short
  EXPECT_TRUE(accepted(repeated("\xE4\xB8\xAD", 42)));
  EXPECT_FALSE(accepted(repeated("\xE4\xB8\xAD", 128)));
}

TEST(Key, TheOtherPartsHaveTheirOwnLimits) {
  EXPECT_TRUE(check_key(Key(std::string(64, 't'), std::string(32, 'b'), "k")));
  EXPECT_FALSE(check_key(Key(std::string(65, 't'), "", "k")));
  const auto bad = check_key(Key("", std::string(33, 'b'), "k"));
  ASSERT_TRUE(bad.has_error());
  EXPECT_EQ(bad.error().code, errc::invalid_argument);
  EXPECT_EQ(bad.error().message, "biz_type has 33 bytes; at most 32 are allowed");
}

TEST(StorageName, IsInjectiveOverShiftedBoundariesAndComesBack) {
  const std::vector<Key> keys = {{"", "", "abc"},  {"", "a", "bc"},    {"a", "", "bc"},
                                 {"a", "b", "c"},  {"ab", "", "c"},    {"", "ab", "c"},
                                 {"", "", "1:a"},  {"1:a", "", "b"},   {"", "1:a", "b"},
                                 {"", "", "0:0:"}, {"0:", "0:", "0:"}, {"", "", "ABC"}};
  std::set<std::string> names;
  for (const Key& key : keys) {
    const std::string name = storage_name(key);
    EXPECT_TRUE(names.insert(name).second) << name;
    EXPECT_EQ(parse_storage_name(name).value(), key);
  }
  for (const char* bad : {"", "1", "1:", "2:a", "1:a", "01:ab1:bc", "x:a1:b", "-1:a1:b"}) {
    EXPECT_FALSE(parse_storage_name(bad)) << bad;
  }
}

// H18: three deliveries of one notice are one payment.
TEST(KeyBuilder, H18TheSameFactsGiveTheSameKeyAndOthersDoNot) {
  const auto pay = [] { return KeyBuilder("PAY").add("ORD-9").add(3).key(); };
  EXPECT_EQ(pay(), "PAY|ORD-9|3");
  EXPECT_EQ(pay(), pay());
  EXPECT_NE(KeyBuilder("REFUND").add("ORD-9").add(4).key(), pay());
}

TEST(KeyBuilder, SeparatorsInsideFactsCannotMoveTheBoundary) {
  EXPECT_NE(KeyBuilder("a").add("b|c").key(), KeyBuilder("a").add("b").add("c").key());
  EXPECT_NE(KeyBuilder("a").add("b\\").add("c").key(), KeyBuilder("a").add("b\\|c").key());
  EXPECT_NE(KeyBuilder("a").add("").add("b").key(), KeyBuilder("a").add("b").add("").key());
}

TEST(KeyBuilder, LongFactsBecomeADigestThatNoShortFactsCanSpell) {
  const std::string long_fact = repeated("\xE4\xB8\xAD", 60);
  const std::string key = KeyBuilder("PAY").add(long_fact).key();
  EXPECT_TRUE(check_key(Key(key))) << key;
  EXPECT_EQ(key.substr(0, 11), "PAY\\sha256:");
  EXPECT_NE(key, KeyBuilder("PAY").add(long_fact + "x").key());
  EXPECT_NE(KeyBuilder(key).key(), key);
  EXPECT_EQ(KeyBuilder(repeated("\xE4\xB8\xAD", 60)).key().size(), 54U + 72U);
}

}  // namespace
}  // namespace idem
