#include "idem/fingerprint.hpp"

#include <gtest/gtest.h>

namespace idem {
namespace {

// H14, and the values that other languages' clients compute.
TEST(Fingerprint, H14RawBytesKeepMemberOrderAndCanonicalJsonDoesNot) {
  const std::string one = R"({"amount":100,"currency":"CNY"})";
  const std::string two = R"({"currency":"CNY","amount":100})";
  EXPECT_EQ(Fingerprint::of_bytes(one).hex().substr(0, 8), "e40373cb");
  EXPECT_EQ(Fingerprint::of_bytes(two).hex().substr(0, 8), "a1d32b22");
  EXPECT_EQ(Fingerprint::of_json(one).value(), Fingerprint::of_json(two).value());
  EXPECT_EQ(Fingerprint::of_json(R"({"a":{"x":1,"y":2}})").value(),
            Fingerprint::of_json(R"({ "a" : { "y":2, "x":1 } })").value());
  EXPECT_NE(Fingerprint::of_json("[1,2]").value(), Fingerprint::of_json("[2,1]").value());
}

TEST(CanonicalJson, KeepsNumbersAsWrittenSoThatLargeOnesStayDifferent) {
  EXPECT_EQ(canonical_json(R"({"b":[1.0, 1e2,-0.5],"a":null})").value(),
            R"({"a":null,"b":[1.0,1e2,-0.5]})");
  EXPECT_NE(canonical_json("100000000000000000000001").value(),
            canonical_json("100000000000000000000002").value());
  EXPECT_EQ(canonical_json("[]").value(), "[]");
  EXPECT_EQ(canonical_json(R"({"":{},"t":true,"s":"é\n"})").value(),
            "{\"\":{},\"s\":\"é\\n\",\"t\":true}");
}

TEST(CanonicalJson, RefusesWhatHasNoSingleMeaning) {
  EXPECT_FALSE(canonical_json(""));
  EXPECT_FALSE(canonical_json("{"));
  EXPECT_FALSE(canonical_json("{} x"));
  EXPECT_FALSE(canonical_json("\"\xC3\x28\""));
  const auto twice = canonical_json(R"({"a":1,"\u0061":2})");
  ASSERT_TRUE(twice.has_error());
  EXPECT_EQ(twice.error().message, R"(member name "a" stands twice in one object)");
  EXPECT_FALSE(canonical_json(std::string(300, '[') + std::string(300, ']')));
  EXPECT_TRUE(canonical_json(std::string(200, '[') + std::string(200, ']')));
  EXPECT_FALSE(canonical_json(std::string(1'000'000, '[')));
}

TEST(Fingerprint, PiecesAreTheSameAsTheWhole) {
  FingerprintStream stream;
  EXPECT_EQ(stream.end(), Fingerprint::of_bytes(""));
  std::string whole;
  for (std::size_t i = 0; i < 300; ++i) {
    const std::string piece(i, static_cast<char>('a' + i % 26));
    stream.add(piece);
    whole += piece;
  }
  FingerprintStream moved = std::move(stream);
  EXPECT_EQ(moved.end(), Fingerprint::of_bytes(whole));
  moved.add("x");
  EXPECT_EQ(moved.end(), Fingerprint::of_bytes("x")) << "the end begins anew";
}

TEST(Fingerprint, HexComesBackAndIsChecked) {
  const Fingerprint print = Fingerprint::of_bytes("x");
  EXPECT_EQ(Fingerprint::from_hex(print.hex()).value(), print);
  EXPECT_FALSE(Fingerprint::from_hex(print.hex().substr(1)));
  EXPECT_FALSE(Fingerprint::from_hex(std::string(63, '0') + "g"));
}

}  // namespace
}  // namespace idem
