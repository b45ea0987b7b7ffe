// VerbContract: keys, scopes and results as callers give them.
#include <memory>
#include <vector>

#include "verb_matchers.hpp"

namespace idem::conformance {
namespace {

using namespace std::chrono_literals;
using namespace idem::testing;

// H15: the same key for two business types, and for two tenants, is two requests.
TEST_P(VerbContract, H15ScopesAreApart) {
  const Fingerprint hash = Fingerprint::of_bytes("body");
  const Request pay{Key("", "pay", "1"), hash};
  auto first = service().claim(pay);
  ASSERT_THAT(first, IsClaimed());
  EXPECT_THAT(service().complete(std::get<Claimed>(*first).lease, "R-pay"), IsCompleted());
  EXPECT_THAT(service().claim({Key("", "refund", "1"), hash}), IsClaimed(AttemptIs(1)));
  EXPECT_THAT(service().claim({Key("acme", "pay", "1"), hash}), IsClaimed(AttemptIs(1)));
  EXPECT_THAT(service().claim({Key("", "", "1"), hash}), IsClaimed(AttemptIs(1)));
  EXPECT_THAT(service().claim({Key("pay", "", "1"), hash}), IsClaimed(AttemptIs(1)));
  EXPECT_THAT(service().claim(pay), ReplayOf("R-pay"));
}

// H16: what is a key. A bad one costs no round trip.
TEST_P(VerbContract, H16KeysAreCheckedBeforeAnythingIsSent) {
  auto recorder = std::make_shared<RecordingStore>(shared_store());
  ServiceOptions options;
  options.clock = &caller_clock();
  IdempotencyService checked(recorder, options);
  const Fingerprint hash = Fingerprint::of_bytes("body");
  std::string cjk;
  for (int i = 0; i < 128; ++i) cjk += "\xE6\x94\xAF";
  for (const std::string& bad :
       {std::string(), std::string(129, 'a'), std::string(4096, 'a'), std::string("   "),
        std::string("a\r\nb"), std::string("a\0b", 3), std::string("\xC3\x28"), cjk,
        std::string("\x7F"), std::string("a\tb")}) {
    EXPECT_THAT(checked.claim({Key(bad), hash}), HasError(errc::invalid_argument)) << quote(bad);
  }
  EXPECT_THAT(checked.claim({Key(std::string(65, 't'), "", "k"), hash}),
              HasError(errc::invalid_argument));
  EXPECT_THAT(checked.claim({Key("", std::string(33, 'b'), "k"), hash}),
              HasError(errc::invalid_argument));
  EXPECT_EQ(recorder->calls(), 0u);
  for (const std::string& good : {std::string("a"), std::string(127, 'a'), std::string(128, 'a'),
                                  cjk.substr(0, 126), std::string(" a ")}) {
    EXPECT_THAT(checked.claim({Key(good), hash}), IsClaimed()) << quote(good);
  }
}

// H18: three notices of one payment are one request.
TEST_P(VerbContract, H18AKeyFromBusinessFactsIgnoresDeliveries) {
  const auto notice = [&](const char* action, int sequence) {
    return claim(KeyBuilder(action).add("ORD-9").add(sequence).key(), "facts");
  };
  auto first = notice("PAY", 3);
  ASSERT_THAT(first, IsClaimed());
  EXPECT_THAT(service().complete(std::get<Claimed>(*first).lease, "paid"), IsCompleted());
  EXPECT_THAT(notice("PAY", 3), ReplayOf("paid"));
  EXPECT_THAT(notice("PAY", 3), ReplayOf("paid"));
  EXPECT_THAT(notice("REFUND", 4), IsClaimed());
}

// H32: results of every size up to the maximum; over it nothing is sent.
TEST_P(VerbContract, H32ResultSizes) {
  for (const std::size_t size : {std::size_t{0}, std::size_t{1}, std::size_t{65535},
                                 std::size_t{65536}, std::size_t{117465}, std::size_t{1048576}}) {
    const std::string key = "k" + std::to_string(size);
    std::string result(size, 'x');
    for (std::size_t i = 0; i < size; i += 97) result[i] = static_cast<char>(i >> 5);
    Lease lease = claimed(key);
    ASSERT_THAT(service().complete(lease, result), IsCompleted()) << size;
    const auto replayed = claim(key);
    ASSERT_THAT(replayed, IsReplay()) << size;
    EXPECT_TRUE(std::get<Replay>(*replayed).result == result) << size;
    EXPECT_EQ(std::get<Replay>(*replayed).size, size);
  }
}

TEST_P(VerbContract, H32AResultOverTheMaximumIsRefusedAndASmallerOneWorks) {
  Lease lease = claimed("k");
  const std::string large(kResultBytesDefault + 1, 'x');
  const Record before = record("k");
  EXPECT_THAT(service().complete(lease, large), HasError(errc::too_large));
  EXPECT_EQ(record("k"), before) << "still processing, with its token";
  EXPECT_THAT(service().complete(lease, std::string(17 << 20, 'x')), HasError(errc::too_large));
  EXPECT_THAT(service().complete(lease, "small"), IsCompleted());
  EXPECT_THAT(claim("k"), ReplayOf("small"));
}

TEST_P(VerbContract, ATombstoneRemembersThatItRanOnce) {
  Policy policy;
  policy.oversize = Oversize::tombstone;
  policy.max_result_bytes = 1000;
  const auto marking = service_with(policy);
  auto outcome = marking->claim(request("k"));
  ASSERT_THAT(outcome, IsClaimed());
  Lease& lease = std::get<Claimed>(*outcome).lease;
  const std::string large(1001, 'x');
  EXPECT_THAT(marking->complete(lease, large), IsCompleted());
  const auto replayed = marking->claim(request("k"));
  ASSERT_THAT(replayed, IsReplay(NotRetained()));
  EXPECT_EQ(std::get<Replay>(*replayed).size, 1001u);
  EXPECT_EQ(std::get<Replay>(*replayed).digest, Fingerprint::of_bytes(large));
  EXPECT_EQ(std::get<Replay>(*replayed).result, "");
  EXPECT_THAT(marking->complete(lease, large), IsCompleted(Already()));
  EXPECT_THAT(marking->claim(request("k", "another")), IsMismatch());
}

TEST_P(VerbContract, ResultsAreReplayedByteForByte) {
  std::string every;
  for (int byte = 255; byte >= 0; --byte) every += static_cast<char>(byte);
  for (const std::string& result :
       {std::string(), std::string(1, '\0'), every, std::string("{\"id\":\"P1\"}"),
        std::string("  spaces  "), std::string("\r\n")}) {
    const std::string key = "k" + Fingerprint::of_bytes(result).hex().substr(0, 12);
    Lease lease = claimed(key);
    EXPECT_THAT(service().complete(lease, result), IsCompleted());
    for (int i = 0; i < 3; ++i) EXPECT_THAT(claim(key), ReplayOf(result));
  }
}

// Policies by biz_type and by call, the narrower one wins.
TEST_P(VerbContract, ThePolicyOfTheBizTypeCounts) {
  ServiceOptions options;
  options.clock = &caller_clock();
  options.biz_types["slow"].lease = 5min;
  options.biz_types["off"].enabled = false;
  IdempotencyService several(shared_store(), options);
  const Fingerprint hash = Fingerprint::of_bytes("body");
  const auto left = [&](const char* biz, const CallOptions& call = {}) {
    auto outcome = several.claim({Key("", biz, "k"), hash}, call);
    return outcome.has_value() && std::holds_alternative<Claimed>(*outcome)
               ? std::get<Claimed>(*outcome).lease.lease_left()
               : Micros(-1);
  };
  EXPECT_EQ(left(""), 30s);
  EXPECT_EQ(left("slow"), 5min);
  EXPECT_THAT(several.claim({Key("", "off", "k"), hash}), IsClaimed(Kind(ClaimKind::bypass)));
  CallOptions call;
  call.policy.lease = 7s;
  EXPECT_EQ(left("other", call), 7s);
}

}  // namespace
}  // namespace idem::conformance
