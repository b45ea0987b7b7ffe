// VerbContract: claim_many and complete_many (acceptance scenario H12).
#include <vector>

#include "verb_matchers.hpp"

namespace idem::conformance {
namespace {

using namespace std::chrono_literals;
using namespace idem::testing;

TEST_P(VerbContract, H12ABatchAnswersEachItemInInputOrder) {
  Lease done = claimed("done");
  EXPECT_THAT(service().complete(done, "R"), IsCompleted());
  const Lease elsewhere = claimed("elsewhere");
  std::vector<Request> requests;
  for (int i = 0; i < 97; ++i) requests.push_back(request("new-" + std::to_string(99 - i)));
  requests.push_back(request("done"));
  requests.push_back(request("elsewhere"));
  requests.push_back(requests[0]);
  const auto outcomes = service().claim_many(requests);
  ASSERT_EQ(outcomes.size(), 100u);
  for (std::size_t i = 0; i < 97; ++i) {
    ASSERT_THAT(outcomes[i], IsClaimed(AttemptIs(1))) << i;
    EXPECT_EQ(std::get<Claimed>(*outcomes[i]).lease.request().key, requests[i].key);
    EXPECT_EQ(std::get<Claimed>(*outcomes[i]).lease.token(), record(requests[i].key.key).token());
  }
  EXPECT_THAT(outcomes[97], ReplayOf("R"));
  EXPECT_THAT(outcomes[98], IsInProgress());
  EXPECT_THAT(outcomes[99], IsInProgress()) << "not a second claim";
}

TEST_P(VerbContract, H12OneBadKeyHarmsNoOther) {
  std::vector<Request> requests;
  for (int i = 0; i < 101; ++i) requests.push_back(request("k" + std::to_string(i)));
  requests[50] = request(std::string(129, 'x'));
  const auto outcomes = service().claim_many(requests);
  for (std::size_t i = 0; i < outcomes.size(); ++i) {
    if (i == 50) {
      EXPECT_THAT(outcomes[i], HasError(errc::invalid_argument));
    } else {
      EXPECT_THAT(outcomes[i], IsClaimed()) << i;
    }
  }
}

TEST_P(VerbContract, AKeyRepeatedInABatchIsOneRequest) {
  const std::vector<Request> requests{request("k"), request("k", "another"), request("k"),
                                      request("k2")};
  for (const bool given_owner : {false, true}) {
    CallOptions options;
    if (given_owner) options.owner = Owner::random();
    const auto outcomes = service().claim_many(requests, options);
    EXPECT_THAT(outcomes[0], IsClaimed()) << given_owner;
    EXPECT_THAT(outcomes[1], IsMismatch());
    EXPECT_THAT(outcomes[2], IsInProgress());
    EXPECT_THAT(outcomes[3], IsClaimed());
    advance(25h);  // the same over expired records, which are replaced
  }
}

TEST_P(VerbContract, ABatchOfEveryState) {
  Lease done = claimed("S");
  EXPECT_THAT(service().complete(done, "R"), IsCompleted());
  Lease final = claimed("FF");
  EXPECT_THAT(service().fail(final, FailKind::final, "no"), IsFailRecorded());
  Lease retry = claimed("FR");
  EXPECT_THAT(service().fail(retry, FailKind::retryable, "503"), IsFailRecorded());
  Lease later = claimed("FB");
  EXPECT_THAT(service().fail(later, FailKind::retryable, "503", 1h), IsFailRecorded());
  const Lease lapsed = claimed("PX");
  advance(30s);
  const Lease live = claimed("PL");
  const std::vector<Request> requests{request("PL"), request("FB"),    request("S"),
                                      request("PX"), request("A"),     request("FR"),
                                      request("FF"), request("S", "x")};
  const auto outcomes = service().claim_many(requests);
  EXPECT_THAT(outcomes[0], IsInProgress());
  EXPECT_THAT(outcomes[1], IsBackoff());
  EXPECT_THAT(outcomes[2], ReplayOf("R"));
  EXPECT_THAT(outcomes[3], IsClaimed(AttemptIs(2)));
  EXPECT_THAT(outcomes[4], IsClaimed(AttemptIs(1)));
  EXPECT_THAT(outcomes[5], IsClaimed(AttemptIs(2)));
  EXPECT_THAT(outcomes[6], FailedWith("no"));
  EXPECT_THAT(outcomes[7], IsMismatch());
}

TEST_P(VerbContract, CompleteManyStoresEachResultUnderItsOwnKey) {
  std::vector<Lease> leases;
  std::vector<std::string> results;
  for (int i = 0; i < 50; ++i) {
    leases.push_back(claimed("k" + std::to_string(i)));
    results.push_back("result " + std::to_string(i));
  }
  Lease lost = claimed("lost");
  advance(30s);
  const Lease successor = claimed("lost");
  leases.push_back(std::move(lost));
  results.emplace_back("ghost");
  Lease gone = claimed("gone");
  ASSERT_THAT(service().force_release(Key("gone"), gone.fence()), IsDone());
  leases.push_back(std::move(gone));
  results.emplace_back("ghost");
  Lease large = claimed("large");
  leases.push_back(std::move(large));
  results.emplace_back(kResultBytesDefault + 1, 'x');
  std::vector<IdempotencyService::CompleteItem> items;
  for (std::size_t i = leases.size(); i-- > 0;) items.push_back({&leases[i], results[i]});
  const auto outcomes = service().complete_many(items);
  ASSERT_EQ(outcomes.size(), 53u);
  EXPECT_THAT(outcomes[0], HasError(errc::too_large));
  EXPECT_THAT(outcomes[1], IsGone());
  EXPECT_THAT(outcomes[2], IsLost());
  for (std::size_t i = 3; i < outcomes.size(); ++i) EXPECT_THAT(outcomes[i], IsCompleted());
  for (int i = 0; i < 50; ++i) {
    EXPECT_THAT(claim("k" + std::to_string(i)), ReplayOf("result " + std::to_string(i)));
  }
  EXPECT_EQ(record("lost").token(), successor.token());
  EXPECT_THAT(service().get(Key("gone")), IsAbsent());
  EXPECT_EQ(record("large").status, Status::processing);
}

TEST_P(VerbContract, EmptyBatchesAnswerNothing) {
  EXPECT_TRUE(service().claim_many({}).empty());
  EXPECT_TRUE(service().complete_many({}).empty());
}

}  // namespace
}  // namespace idem::conformance
