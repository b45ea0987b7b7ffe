// VerbContract: sweep, wait without waiting, get, list and the verbs of an administrator.
#include <memory>
#include <set>
#include <vector>

#include "verb_matchers.hpp"

namespace idem::conformance {
namespace {

using namespace std::chrono_literals;
using namespace idem::testing;

std::vector<Request> requests_of(const std::string& prefix, int count) {
  std::vector<Request> made;
  for (int i = 0; i < count; ++i) {
    made.push_back({Key(prefix + std::to_string(i)), Fingerprint::of_bytes("body")});
  }
  return made;
}

std::vector<Lease> leases_of(std::vector<result<ClaimOutcome>> outcomes) {
  std::vector<Lease> leases;
  for (auto& outcome : outcomes) leases.push_back(std::move(std::get<Claimed>(*outcome).lease));
  return leases;
}

// H11 in tenths: what is dead goes, step by step; what is live stays.
TEST_P(VerbContract, H11CleaningRemovesOnlyWhatIsDead) {
  CallOptions brief;
  brief.policy.lease = 10s;
  brief.policy.result_ttl = 60s;
  auto dead = leases_of(service().claim_many(requests_of("dead-", 400)));
  auto done = leases_of(service().claim_many(requests_of("done-", 300)));
  auto failed = leases_of(service().claim_many(requests_of("failed-", 100)));
  auto renewed = leases_of(service().claim_many(requests_of("renewed-", 100)));
  const auto silent = leases_of(service().claim_many(requests_of("silent-", 100)));
  std::vector<IdempotencyService::CompleteItem> items;
  for (Lease& lease : dead) items.push_back({&lease, "R"});
  for (const auto& outcome : service().complete_many(items, brief)) {
    ASSERT_THAT(outcome, IsCompleted());
  }
  items.clear();
  for (Lease& lease : done) items.push_back({&lease, "R"});
  for (const auto& outcome : service().complete_many(items)) ASSERT_THAT(outcome, IsCompleted());
  for (Lease& lease : failed) {
    ASSERT_THAT(service().fail(lease, FailKind::retryable, "503"), IsFailRecorded());
  }
  CallOptions longer;
  longer.policy.lease = 600s;
  for (int i = 0; i < 2; ++i) {
    advance(350s);
    for (Lease& lease : renewed) ASSERT_THAT(service().renew(lease, longer), IsRenewed());
  }
  std::uint64_t abandoned = 0;
  std::uint64_t expired = 0;
  std::vector<std::uint64_t> steps;
  do {
    const auto swept = service().sweep(50);
    ASSERT_TRUE(swept.has_value()) << describe(swept);
    abandoned += swept->abandoned;
    expired += swept->expired;
    steps.push_back(swept->abandoned + swept->expired);
  } while (steps.back() != 0);
  if (!frees_by_itself()) {
    EXPECT_EQ(steps, (std::vector<std::uint64_t>{50, 50, 50, 50, 50, 50, 50, 50, 50, 50, 0}));
  }
  for (const std::uint64_t step : steps) EXPECT_LE(step, 50u);
  EXPECT_EQ(abandoned, 100u);
  expect_count(expired, 400);
  const StoreStats stats = store().stats().value();
  EXPECT_EQ(stats.processing, 100u) << "all renewed ones";
  EXPECT_EQ(stats.success, 300u);
  EXPECT_EQ(stats.failed, 200u);
  EXPECT_THAT(claim("silent-7"), IsClaimed(AttemptIs(2)));
  EXPECT_THAT(claim("renewed-7"), IsInProgress(AttemptIs(1)));
  EXPECT_THAT(claim("failed-7"), IsClaimed(AttemptIs(2)));
  EXPECT_THAT(claim("done-7"), ReplayOf("R"));
  EXPECT_THAT(claim("dead-7"), IsClaimed(AttemptIs(1)));
}

TEST_P(VerbContract, SweepGivesUpAtStuckAfterAndNotBefore) {
  Lease lease = claimed("k");
  advance(599'999ms);
  EXPECT_THAT(service().sweep(), SweptOf(0, 0));
  advance(1ms);
  EXPECT_THAT(service().sweep(), SweptOf(1, 0));
  const Record abandoned = record("k");
  EXPECT_EQ(abandoned.status, Status::failed);
  EXPECT_EQ(abandoned.fail_kind, FailKind::abandoned);
  EXPECT_EQ(abandoned.token(), lease.token()) << "token and fence are kept";
  EXPECT_EQ(abandoned.expires_at, store_clock().now() + 24h);
  EXPECT_THAT(service().sweep(), SweptOf(0, 0));
}

TEST_P(VerbContract, SweepCountsFromTheLastRenewal) {
  Lease lease = claimed("k");
  advance(25s);
  ASSERT_THAT(service().renew(lease), IsRenewed());
  advance(599s);
  EXPECT_THAT(service().sweep(), SweptOf(0, 0));
  advance(1s);
  EXPECT_THAT(service().sweep(), SweptOf(1, 0));
}

TEST_P(VerbContract, ALiveLeaseIsNeverSweptHoweverLong) {
  CallOptions longer;
  longer.policy.lease = 1h;
  const Lease lease = claimed("k", "body", longer);
  advance(1h - 1ms);
  EXPECT_THAT(service().sweep(), SweptOf(0, 0));
  EXPECT_THAT(claim("k"), IsInProgress(RetryAfter(1ms)));
}

// It did the work, though the sweep had given it up: its result counts, unless another took over.
TEST_P(VerbContract, AnAbandonedOwnerCanStillComplete) {
  Lease slow = claimed("k");
  Lease slower = claimed("k2");
  advance(601s);
  ASSERT_THAT(service().sweep(), SweptOf(2, 0));
  EXPECT_THAT(service().complete(slow, "R"), IsCompleted());
  EXPECT_THAT(claim("k"), ReplayOf("R"));
  const Lease next = claimed("k2");
  EXPECT_EQ(next.attempt(), 2u) << "attempts stay counted";
  EXPECT_THAT(service().complete(slower, "ghost"), IsLost());
}

TEST_P(VerbContract, AnAbandonedRecordGoesWhenItsTimeComes) {
  const Lease lease = claimed("k");
  advance(600s);
  ASSERT_THAT(service().sweep(), SweptOf(1, 0));
  advance(24h - 1ms);
  EXPECT_THAT(service().sweep(), SweptOf(0, 0));
  advance(1ms);
  expect_count(service().sweep().value().expired, 1);
  EXPECT_EQ(store().stats().value().records(), 0u);
}

// H21: the sweeper has seen an expired record; before it removes it, the key is claimed again.
TEST_P(VerbContract, H21TheSweepDoesNotRemoveAFreshClaim) {
  IDEM_EXACT_ONLY();
  auto hooked = std::make_shared<FaultStore>(shared_store(), store_clock());
  ServiceOptions options;
  options.clock = &caller_clock();
  IdempotencyService sweeper(hooked, options);
  const Lease stuck = claimed("k");
  advance(600s);
  std::optional<Lease> second;
  hooked->before_call(Verb::replace, 1, [&] { second.emplace(claimed("k")); });
  EXPECT_THAT(sweeper.sweep(), SweptOf(0, 0)) << "seen as stuck, but claimed again meanwhile";
  ASSERT_TRUE(second.has_value());
  EXPECT_EQ(record("k").token(), second->token());
  EXPECT_THAT(claim("k"), IsInProgress());
  EXPECT_THAT(service().complete(*second, "R"), IsCompleted());
}

// A wait only reads.
TEST_P(VerbContract, WaitTellsTheStateAndWritesNothing) {
  IDEM_EXACT_ONLY();
  auto recorder = std::make_shared<RecordingStore>(shared_store());
  ServiceOptions options;
  options.clock = &caller_clock();
  IdempotencyService reader(recorder, options);
  Lease done = claimed("S");
  EXPECT_THAT(service().complete(done, "R"), IsCompleted());
  Lease final = claimed("FF");
  EXPECT_THAT(service().fail(final, FailKind::final, "no"), IsFailRecorded());
  Lease retry = claimed("FR");
  EXPECT_THAT(service().fail(retry, FailKind::retryable, "503"), IsFailRecorded());
  const Lease lapsed = claimed("PX");
  advance(30s);
  const Lease live = claimed("PL");
  EXPECT_THAT(reader.wait(request("S"), 0s), ReplayOf("R"));
  EXPECT_THAT(reader.wait(request("S", "x"), 0s), IsMismatch());
  EXPECT_THAT(reader.wait(request("FF"), 0s), FailedWith("no"));
  EXPECT_THAT(reader.wait(request("FR"), 0s), IsClaimable());
  EXPECT_THAT(reader.wait(request("PX"), 0s), IsClaimable());
  EXPECT_THAT(reader.wait(request("A"), 0s), IsClaimable());
  EXPECT_THAT(reader.wait(request("PL"), 0s), IsInProgress());
  EXPECT_THAT(reader.wait(request("PL", "x"), 0s), IsMismatch());
  EXPECT_EQ(recorder->calls(), recorder->calls(Verb::load));
}

TEST_P(VerbContract, GetShowsWhatStands) {
  EXPECT_THAT(service().get(Key("k")), IsAbsent());
  Lease lease = claimed("k");
  EXPECT_THAT(service().get(Key("k")), IsFound(Status::processing));
  EXPECT_THAT(service().complete(lease, "R"), IsCompleted());
  const auto found = service().get(Key("k"));
  ASSERT_THAT(found, IsFound(Status::success));
  EXPECT_EQ((*found)->now, store_clock().now());
  EXPECT_EQ((*found)->record.result, "R");
  EXPECT_THAT(service().get(Key("")), HasError(errc::invalid_argument));
}

TEST_P(VerbContract, ListPagesThroughTheRecords) {
  for (int i = 0; i < 25; ++i) (void)claimed("k" + std::to_string(i));
  std::set<std::string> seen;
  ListQuery query;
  query.limit = 10;
  int pages = 0;
  do {
    const auto page = service().list(query);
    ASSERT_TRUE(page.has_value()) << describe(page);
    for (const Listed& item : page->items) EXPECT_TRUE(seen.insert(item.key.key).second);
    query.cursor = page->cursor;
    ++pages;
  } while (!query.cursor.empty() && pages < 10);
  EXPECT_EQ(seen.size(), 25u);
}

// An administrator acts on what was seen, not on what came after it.
TEST_P(VerbContract, AStaleFenceIsRefused) {
  const Lease slow = claimed("k");
  advance(30s);
  const Lease next = claimed("k");
  const Record before = record("k");
  EXPECT_THAT(service().force_release(Key("k"), slow.fence()), HasError(errc::stale_fence));
  EXPECT_THAT(service().force_fail(Key("k"), slow.fence(), "stuck"), HasError(errc::stale_fence));
  EXPECT_THAT(service().resolve(Key("k"), slow.fence(), ResolveSuccess{"R"}),
              HasError(errc::stale_fence));
  EXPECT_THAT(service().force_release(Key("none"), slow.fence()), HasError(errc::stale_fence));
  EXPECT_EQ(record("k"), before);
}

TEST_P(VerbContract, AnAdministratorEndsWhatIsProcessing) {
  Lease released = claimed("released");
  EXPECT_THAT(service().force_release(Key("released"), released.fence()), IsDone());
  EXPECT_THAT(service().complete(released, "ghost"), IsGone());
  EXPECT_THAT(claim("released"), IsClaimed(AttemptIs(1)));

  Lease failed = claimed("failed");
  EXPECT_THAT(service().force_fail(Key("failed"), failed.fence(), "stuck"), IsDone());
  EXPECT_THAT(claim("failed"), FailedWith("stuck"));
  EXPECT_THAT(service().complete(failed, "ghost"), IsNotProcessing());

  CallOptions hold;
  hold.policy.on_lapsed = OnLapsed::hold;
  const Lease doubtful = claimed("doubtful", "body", hold);
  advance(30s);
  const auto seen = claim("doubtful", "body", hold);
  ASSERT_THAT(seen, IsInDoubt());
  const std::uint64_t fence = std::get<InDoubt>(*seen).fence;
  EXPECT_THAT(service().resolve(Key("doubtful"), fence, ResolveSuccess{"it was paid"}), IsDone());
  EXPECT_THAT(claim("doubtful", "body", hold), ReplayOf("it was paid"));

  const Lease unpaid = claimed("unpaid", "body", hold);
  advance(30s);
  EXPECT_THAT(service().resolve(Key("unpaid"), unpaid.fence(),
                                ResolveFailure{"never sent", FailKind::retryable}),
              IsDone());
  EXPECT_THAT(claim("unpaid", "body", hold), IsClaimed(AttemptIs(2)));
}

TEST_P(VerbContract, AnEndedRecordIsNotTheAdministratorsAnyMore) {
  Lease lease = claimed("k");
  EXPECT_THAT(service().complete(lease, "R"), IsCompleted());
  const Record before = record("k");
  EXPECT_THAT(service().force_release(Key("k"), lease.fence()), HasError(errc::stale_fence));
  EXPECT_THAT(service().force_fail(Key("k"), lease.fence(), "no"), HasError(errc::stale_fence));
  EXPECT_EQ(record("k"), before);
}

}  // namespace
}  // namespace idem::conformance
