// The pure parts: records, replies, errors, slots. Bytes in, values out.
#include <gtest/gtest.h>

#include <functional>
#include <random>

#include "record_codec.hpp"
#include "reply_error.hpp"
#include "resp.hpp"
#include "router.hpp"
#include "server_time.hpp"

namespace idem::redis {
namespace {

Draft some_draft(std::string_view result) {
  Draft draft;
  draft.request_hash = Fingerprint::of_bytes("request");
  draft.owner = Owner::random();
  draft.fence = 77;
  draft.attempt = 3;
  draft.status = Status::failed;
  draft.fail_kind = FailKind::retryable;
  draft.retry_after = std::chrono::seconds(9);
  draft.result = result;
  return draft;
}

Head some_head() {
  return {Time(Micros(1'700'000'000'000'001)), 1'700'000'000'000'002,
          Time(Micros(1'600'000'000'000'003)), Time(Micros(8'000'000'000'000'004))};
}

std::string stored(std::string_view name, const Draft& draft, const Head& head = some_head()) {
  std::string bytes;
  append_record(bytes, head, name, draft);
  return bytes;
}

TEST(RedisRecord, ComesBackAsItWasWritten) {
  const std::string binary("\0\r\n\xff{}", 6);
  for (const std::string& result : {std::string(), binary, std::string(1 << 20, 'x')}) {
    const Draft draft = some_draft(result);
    const std::string bytes = stored("0:0:k", draft);
    EXPECT_EQ(bytes.size(), kResultAt + result.size());
    const auto record = decode_record("0:0:k", bytes);
    ASSERT_TRUE(record.has_value()) << record.error().message;
    EXPECT_EQ(*record, record_of(draft, some_head()));
    EXPECT_EQ(record->result, result);
    EXPECT_EQ(record->fence, 77U);
    EXPECT_EQ(record->retry_at, some_head().now + std::chrono::seconds(9));
    EXPECT_EQ(record->lease_until, Time{});
  }
}

TEST(RedisRecord, AClaimsFenceIsItsVersion) {
  Draft draft = some_draft("");
  draft.fence = 0;
  EXPECT_EQ(decode_record("n", stored("n", draft))->fence, some_head().version);
}

TEST(RedisRecord, AnyFlippedBitIsCorrupt) {
  const std::string whole = stored("0:3:pay42", some_draft("the result"));
  for (std::size_t bit = 0; bit < whole.size() * 8; ++bit) {
    std::string bytes = whole;
    bytes[bit / 8] = static_cast<char>(bytes[bit / 8] ^ (1 << (bit % 8)));
    const auto record = decode_record("0:3:pay42", bytes);
    ASSERT_FALSE(record.has_value()) << "bit " << bit;
    EXPECT_EQ(record.error().code, errc::corrupt);
  }
}

TEST(RedisRecord, CutExtendedOrMovedToAnotherKeyItIsCorrupt) {
  const std::string whole = stored("0:0:k1", some_draft("r"));
  for (std::size_t bytes = 0; bytes < whole.size(); ++bytes) {
    EXPECT_FALSE(decode_record("0:0:k1", whole.substr(0, bytes)).has_value());
  }
  EXPECT_FALSE(decode_record("0:0:k1", whole + "x").has_value());
  EXPECT_FALSE(decode_record("0:0:k2", whole).has_value());
  EXPECT_TRUE(decode_record("0:0:k1", whole).has_value());
}

// The digests fit, but no write makes such a record.
TEST(RedisRecord, WhatNoWriteMakesIsCorrupt) {
  const auto refused = [](const Head& head, const Draft& draft) {
    const auto record = decode_record("n", stored("n", draft, head));
    return !record && record.error().code == errc::corrupt;
  };
  const Draft good = some_draft("r");
  EXPECT_FALSE(refused(some_head(), good));
  Draft draft = good;
  draft.attempt = 0;
  EXPECT_TRUE(refused(some_head(), draft));
  draft = good;
  draft.fail_kind = FailKind::none;
  EXPECT_TRUE(refused(some_head(), draft));
  draft = good;
  draft.fence = some_head().version + 1;
  EXPECT_TRUE(refused(some_head(), draft));
  draft = good;
  draft.retry_after = Micros(-1);
  EXPECT_TRUE(refused(some_head(), draft));
  for (const std::uint64_t version : {std::uint64_t{0}, std::uint64_t{INT64_MAX}, UINT64_MAX}) {
    Head head = some_head();
    head.version = version;
    EXPECT_TRUE(refused(head, good)) << version;
  }
  for (const Time time : {Time(Micros(-1)), Time(Micros(INT64_MAX))}) {
    Head head = some_head();
    head.create_time = time;
    EXPECT_TRUE(refused(head, good));
    head = some_head();
    head.expires_at = time;
    EXPECT_TRUE(refused(head, good));
  }
  Head head = some_head();
  head.expires_at = head.now - Micros(1);
  EXPECT_TRUE(refused(head, good));
}

TEST(RedisRecord, NoiseIsNeverARecord) {
  std::mt19937 random(1);
  for (int i = 0; i < 20'000; ++i) {
    std::string noise(random() % 400, '\0');
    for (char& c : noise) c = static_cast<char>(random());
    if (i % 2 == 0 && noise.size() > 3) noise.replace(0, 3, kRecordMark);
    EXPECT_FALSE(decode_record("n", noise).has_value());
  }
}

// Feeds bytes in pieces of `step`; what was read, or "broken".
std::string read_all(std::string_view bytes, std::size_t step) {
  ReplyReader reader;
  std::string seen;
  const std::function<void(const Reply&)> show = [&](const Reply& reply) {
    switch (reply.type) {
      case Reply::Type::simple:
        seen += "+" + reply.text;
        break;
      case Reply::Type::error:
        seen += "-" + reply.text;
        break;
      case Reply::Type::integer:
        seen += ":" + std::to_string(reply.integer);
        break;
      case Reply::Type::bulk:
        seen += "$" + reply.text;
        break;
      case Reply::Type::nil:
        seen += "nil";
        break;
      case Reply::Type::array:
        seen += "[";
        for (const Reply& element : reply.elements) show(element);
        seen += "]";
        break;
    }
    seen += " ";
  };
  while (!bytes.empty()) {
    const auto room = reader.prepare();
    const std::size_t n = std::min({step, bytes.size(), room.size()});
    std::copy_n(bytes.begin(), n, room.begin());
    reader.commit(n);
    bytes.remove_prefix(n);
    for (;;) {
      auto reply = reader.next();
      if (!reply) return "broken";
      if (!*reply) break;
      show(**reply);
    }
  }
  return seen;
}

TEST(RedisReplies, AreTheSameInWhateverPiecesTheyCome) {
  const std::string_view bytes =
      "+OK\r\n-ERR no\r\n:-42\r\n$3\r\na\r\n\r\n$0\r\n\r\n$-1\r\n*-1\r\n"
      "*3\r\n:1\r\n*1\r\n$1\r\nx\r\n*0\r\n";
  const std::string expected = "+OK -ERR no :-42 $a\r\n $ nil nil [:1 [$x ] [] ] ";
  for (std::size_t step = 1; step <= bytes.size(); ++step) {
    EXPECT_EQ(read_all(bytes, step), expected) << step;
  }
}

// An announced size is not believed before the bytes are there; a bare "$" does not end us.
TEST(RedisReplies, BrokenOrHostileStreamsAreErrors) {
  for (const std::string_view bytes :
       {"$\r\n", "$x\r\n", "$-2\r\n", "$99999999999999999999\r\n", "$1073741824\r\n", "*-7\r\n",
        "*99999999999\r\n", "\r\n", "?\r\n", ":\r\n", ":1x\r\n", "$1\r\nabc\r\n",
        "*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n"}) {
    EXPECT_EQ(read_all(bytes, bytes.size()), "broken") << bytes;
    EXPECT_EQ(read_all(bytes, 1), "broken") << bytes;
  }
  EXPECT_EQ(read_all(std::string(100'000, '+'), 1000), "broken");
  EXPECT_EQ(read_all("*1000000\r\n:1\r\n", 100), "");  // waits, and holds one element
}

TEST(RedisReplies, NoiseEndsInAnErrorOrInWaiting) {
  std::mt19937 random(2);
  constexpr std::string_view kAlphabet = "+-:$*0123456789\r\n\r\nab";
  for (int i = 0; i < 20'000; ++i) {
    std::string noise(1 + random() % 60, '\0');
    for (char& c : noise) c = kAlphabet[random() % kAlphabet.size()];
    (void)read_all(noise, 1 + random() % 7);
  }
}

TEST(RedisCommands, AreBinarySafe) {
  std::string out;
  append_command(out, {"SET", std::string_view("a\r\nb\0", 5), ""});
  EXPECT_EQ(out, std::string_view("*3\r\n$3\r\nSET\r\n$5\r\na\r\nb\0\r\n$0\r\n\r\n", 30));
}

TEST(RedisErrors, GoToTheirClass) {
  const auto code = [](std::string_view text) { return classify(text).error.code; };
  EXPECT_EQ(code("OOM command not allowed when used memory > 'maxmemory'."), errc::capacity);
  EXPECT_EQ(code("NOPERM this user has no permissions"), errc::denied);
  EXPECT_EQ(code("WRONGPASS invalid username-password pair"), errc::denied);
  EXPECT_EQ(code("NOAUTH Authentication required."), errc::denied);
  EXPECT_EQ(code("LOADING Redis is loading the dataset in memory"), errc::unavailable);
  EXPECT_EQ(code("READONLY You can't write against a read only replica."), errc::unavailable);
  EXPECT_EQ(code("NOREPLICAS Not enough good replicas to write."), errc::unavailable);
  EXPECT_EQ(code("MISCONF Redis is configured to save RDB snapshots"), errc::unavailable);
  EXPECT_EQ(code("WRONGTYPE Operation against a key"), errc::corrupt);
  EXPECT_EQ(code("ERR max number of clients reached"), errc::unavailable);
  EXPECT_EQ(code("ERR something new"), errc::internal);
  EXPECT_EQ(classify("NOSCRIPT No matching script.").kind, ReplyErrorKind::no_script);
  const ReplyError moved = classify("MOVED 3999 127.0.0.1:6381");
  EXPECT_EQ(moved.kind, ReplyErrorKind::moved);
  EXPECT_EQ(moved.endpoint, "127.0.0.1:6381");
  EXPECT_EQ(classify("ASK 3999 :6381").endpoint, ":6381");
}

// The cluster specification's own example, and its rules for hash tags.
TEST(RedisSlots, FollowTheSpecification) {
  EXPECT_EQ(slot_of("123456789"), 0x31C3 % kSlots);
  EXPECT_EQ(slot_of("{user1000}.following"), slot_of("{user1000}.followers"));
  EXPECT_EQ(slot_of("foo{bar}{zap}"), slot_of("bar"));
  EXPECT_NE(slot_of("foo{}{bar}"), slot_of("bar"));
  // What keys with braces get in front keeps them whole.
  EXPECT_NE(slot_of("idem:{}0:0:{bar}"), slot_of("bar"));
}

TEST(ServerTime, IsTheLeastLateHearingPlusTheTimeGoneBy) {
  using std::chrono::milliseconds;
  const Time here(Micros(1'000'000'000)), server(Micros(9'000'000'000));
  ServerTime time;
  EXPECT_EQ(time.guess(here), std::nullopt);
  time.hear(server, here);
  EXPECT_EQ(time.guess(here + milliseconds(5)), server + milliseconds(5));
  // That reply took 3 ms longer: what was heard before is nearer to the truth.
  time.hear(server + milliseconds(7), here + milliseconds(10));
  EXPECT_EQ(time.guess(here + milliseconds(10)), server + milliseconds(10));
  // That one was quicker.
  time.hear(server + milliseconds(22), here + milliseconds(20));
  EXPECT_EQ(time.guess(here + milliseconds(30)), server + milliseconds(32));
  // After a second the next one counts in any case: clocks drift.
  time.hear(server + milliseconds(1020), here + milliseconds(1030));
  EXPECT_EQ(time.guess(here + milliseconds(1030)), server + milliseconds(1020));
  EXPECT_EQ(time.guess(here + milliseconds(3029)), server + milliseconds(3019));
  EXPECT_EQ(time.guess(here + milliseconds(3030)), std::nullopt);
}

TEST(RedisRecord, AFloorIsNoRecord) {
  EXPECT_TRUE(is_floor(std::string("IT1") + std::string(8, '\x7f')));
  EXPECT_FALSE(is_floor(std::string("IT1") + std::string(7, '\x7f')));
  EXPECT_FALSE(is_floor(std::string("IT1") + std::string(9, '\x7f')));
  EXPECT_FALSE(is_floor(stored("k", some_draft(""))));
  EXPECT_FALSE(is_floor(""));
}

}  // namespace
}  // namespace idem::redis
