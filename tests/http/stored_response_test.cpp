// Keys in header lines, fingerprints, and the text that a response is stored as.
#include <gmock/gmock.h>

#include <random>

#include "idem/http.hpp"

namespace idem::http {
namespace {

using namespace std::string_view_literals;

std::string key_or_code(std::string_view field, bool strict = false) {
  const auto parsed = parse_key(field, strict);
  if (const auto* key = std::get_if<std::string>(&parsed)) return "key:" + *key;
  return std::string(to_string(std::get<KeyProblem>(parsed).reason));
}

TEST(RequestKey, BareAndQuotedAreTheSameKey) {
  EXPECT_EQ(key_or_code("7c1e"), "key:7c1e");
  EXPECT_EQ(key_or_code("\"7c1e\""), "key:7c1e");
  EXPECT_EQ(key_or_code("  \"7c1e\"\t"), "key:7c1e");
  EXPECT_EQ(key_or_code(R"("a\"b\\c")"), R"(key:a"b\c)");
  EXPECT_EQ(key_or_code(R"(a"b\c)"), R"(key:a"b\c)");
  EXPECT_EQ(key_or_code("\"two words\""), "key:two words");
}

TEST(RequestKey, MalformedKeysAreTold) {
  for (const char* field :
       {"", "   ", "\"\"", "\"  \"", "two words", "\"open", "\"", "\"a\"b", "\"a\";p=1",
        "\"a\", \"b\"", "\"a\\n\"", "\"a\\", "\xC3\xA9", "a\x01", "\"a\x7F\"", "\"\xC3\xA9\""}) {
    EXPECT_EQ(key_or_code(field), "key_malformed") << field;
  }
  EXPECT_EQ(key_or_code("7c1e", true), "key_malformed");
  EXPECT_EQ(key_or_code("\"7c1e\"", true), "key:7c1e");
}

TEST(RequestKey, TheLimitIs128Bytes) {
  const std::string longest(128, 'x');
  EXPECT_EQ(key_or_code(longest), "key:" + longest);
  EXPECT_EQ(key_or_code("\"" + longest + "\""), "key:" + longest);
  EXPECT_EQ(key_or_code(longest + "x"), "key_too_long");
  EXPECT_EQ(key_or_code("\"" + longest + "x\""), "key_too_long");
}

// Parts that merely shift their boundary are different requests.
TEST(RequestFingerprint, CoversMethodTargetAndBody) {
  const Fingerprint first = fingerprint_of("POST", "/pay?x=1", "body");
  EXPECT_EQ(first, fingerprint_of("POST", "/pay?x=1", "body"));
  EXPECT_NE(first, fingerprint_of("PUT", "/pay?x=1", "body"));
  EXPECT_NE(first, fingerprint_of("POST", "/pay?x=2", "body"));
  EXPECT_NE(first, fingerprint_of("POST", "/pay?x=1", "bodY"));
  EXPECT_NE(fingerprint_of("POST", "/a", "bc"), fingerprint_of("POST", "/ab", "c"));
  EXPECT_NE(fingerprint_of("POST", "/a1:b", ""), fingerprint_of("POST", "/a", "1:b"));
  EXPECT_NE(first, Fingerprint::of_bytes("body"));
}

std::string encode(unsigned status, const std::vector<HeaderView>& headers, std::string_view body,
                   std::uint64_t bytes_max = 1 << 20) {
  return encode_response({status, headers, body}, default_stored_headers(), bytes_max);
}

TEST(StoredResponse, ComesBackAsItWas) {
  const std::string body("\0\r\n\n\xFF", 5);
  const std::string text =
      encode(201, {{"content-type", "application/json"}, {"Location", "/p/1"}}, body);
  EXPECT_EQ(text,
            "idem-http/1 201 5 kept\ncontent-type: application/json\nLocation: /p/1\n\n" + body);
  const auto decoded = decode_response(text);
  ASSERT_TRUE(decoded) << decoded.error().message;
  EXPECT_EQ(decoded->response,
            (Response{201, {{"content-type", "application/json"}, {"Location", "/p/1"}}, body}));
  EXPECT_TRUE(decoded->body_kept);
  EXPECT_EQ(decode_response(encode(204, {}, ""))->response, (Response{204, {}, ""}));
  EXPECT_EQ(decode_response(encode(200, {{"ETag", ""}}, ""))->response.headers.size(), 1U);
}

TEST(StoredResponse, LeavesOutWhatMustNotBeReplayed) {
  std::vector<std::string> allowed{"Set-Cookie", "Date", "Content-Length", "Authorization",
                                   "X-Order"};
  const std::vector<HeaderView> headers{{"Set-Cookie", "s=1"},   {"Date", "today"},
                                        {"Content-Length", "3"}, {"authorization", "Basic"},
                                        {"X-Other", "1"},        {"x-order", "9"}};
  EXPECT_EQ(encode_response({200, headers, ""}, allowed, 1000),
            "idem-http/1 200 0 kept\nx-order: 9\n\n");
}

TEST(StoredResponse, LeavesOutWhatConnectionNames) {
  const std::vector<HeaderView> headers{
      {"X-Hop", "1"}, {"X-Order", "9"}, {"connection", "close , x-hop"}, {"Connection", ""}};
  EXPECT_EQ(encode_response({200, headers, ""}, std::vector<std::string>{"X-Hop", "X-Order"}, 1000),
            "idem-http/1 200 0 kept\nX-Order: 9\n\n");
}

TEST(StoredResponse, ABodyThatIsTooLargeIsLeftOut) {
  const std::string text = encode(200, {{"ETag", "1"}}, std::string(1000, 'x'), 500);
  EXPECT_EQ(text, "idem-http/1 200 1000 omitted\nETag: 1\n\n");
  const auto decoded = decode_response(text);
  ASSERT_TRUE(decoded);
  EXPECT_FALSE(decoded->body_kept);
  EXPECT_EQ(decoded->body_bytes, 1000U);
}

// Somebody who can write to the store must not be able to write to the wire.
TEST(StoredResponse, HostileTextsAreNotDecoded) {
  for (const char* text : {"",
                           "idem-http/1",
                           "idem-http/1 200 0 kept\n",
                           "idem-http/1 200 0 kept\nA: b\n",
                           "idem-http/2 200 0 kept\n\n",
                           "idem-http/1 99 0 kept\n\n",
                           "idem-http/1 600 0 kept\n\n",
                           "idem-http/1 101 0 kept\n\n",
                           "idem-http/1 200 1 kept\n\n",
                           "idem-http/1 200 0 kept\n\nx",
                           "idem-http/1 200 0 gone\n\n",
                           "idem-http/1 200 0 kept more\n\n",
                           "idem-http/1 200 0 kept\nSet-Cookie: a=b\n\n",
                           "idem-http/1 200 0 kept\nConnection: close\n\n",
                           "idem-http/1 200 0 kept\nA: b\rSet-Cookie: c\n\n",
                           "idem-http/1 200 0 kept\nA b: c\n\n",
                           "idem-http/1 200 0 kept\nA:b\n\n",
                           "idem-http/1 200 0 kept\n: b\n\n",
                           "idem-http/1 200 -1 kept\n\n",
                           "idem-http/1 +200 0 kept\n\n",
                           "idem-http/1 200 99999999999999999999 kept\n\n"}) {
    const auto decoded = decode_response(text);
    ASSERT_FALSE(decoded) << text;
    EXPECT_EQ(decoded.error().code, errc::corrupt);
  }
}

// 1,000 hostile headers on the way in, 1,000 damaged texts on the way out: no line break, no
// foreign header ever comes through.
TEST(StoredResponse, NoHostileHeaderComesThrough) {
  std::minstd_rand random(42);
  const auto alphabet = "aZ0-:; \t\r\n\0\x7F\xC3\"\\"sv;
  const auto noise = [&](std::size_t bytes) {
    std::string text;
    while (text.size() < bytes) text += alphabet[random() % alphabet.size()];
    return text;
  };
  const auto is_clean = [](const StoredResponse& stored) {
    for (const Header& header : stored.response.headers) {
      if (!is_header_name(header.name) || !is_header_value(header.value) ||
          !is_replayable_header(header.name)) {
        return false;
      }
    }
    return true;
  };
  for (int i = 0; i < 1000; ++i) {
    const std::string name = i % 2 == 0 ? noise(8) : "X-Order";
    const std::string value = noise(12) + "\r\nSet-Cookie: stolen=1" + noise(i % 5);
    const std::vector<std::string> allowed{name};
    const std::vector<HeaderView> headers{{name, value}};
    const std::string text = encode_response({200, headers, "b"}, allowed, 1000);
    EXPECT_EQ(text, "idem-http/1 200 1 kept\n\nb");

    std::string damaged = encode(200, {{"ETag", "1"}, {"Link", "<a>"}}, "body");
    for (int hits = 0; hits < 4; ++hits) damaged[random() % damaged.size()] = noise(1)[0];
    const auto decoded = decode_response(damaged);
    EXPECT_TRUE(!decoded || is_clean(*decoded)) << damaged;
  }
}

TEST(Policy, SenselessPoliciesAreRefused) {
  EXPECT_TRUE(check_policy({}));
  Policy policy;
  policy.key_header = "a b";
  EXPECT_FALSE(check_policy(policy));
  policy = {};
  policy.documentation = "x>\r\nSet-Cookie: a";
  EXPECT_FALSE(check_policy(policy));
  policy = {};
  policy.stored_headers = {"Set-Cookie"};
  EXPECT_FALSE(check_policy(policy));
}

}  // namespace
}  // namespace idem::http
