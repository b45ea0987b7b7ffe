// StoreContract: what one insert, replace, load and remove do to one key.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "drafts.hpp"
#include "idem/conformance/suites.hpp"
#include "idem/testing/describe.hpp"

namespace idem::conformance {
namespace {

using namespace std::chrono_literals;
using State = Answer::State;

std::uint64_t micros(Time at) { return static_cast<std::uint64_t>(at.time_since_epoch().count()); }

// A first claim that is refused, or stored with fields missing, loses the request.
TEST_P(StoreContract, InsertStoresEveryFieldOfAClaim) {
  const Time now = store_clock().now();
  Draft draft = processing();
  draft.attempt = 7;
  const Answer answer = insert({"t", "pay", "k"}, draft);
  ASSERT_EQ(answer.state, State::written);
  EXPECT_EQ(answer.now, now);
  const Record record = held({"t", "pay", "k"});
  EXPECT_EQ(record, answer.held);
  EXPECT_EQ(record.request_hash, draft.request_hash);
  EXPECT_EQ(record.owner, draft.owner);
  EXPECT_GE(record.version, micros(now));
  EXPECT_EQ(record.fence, record.version) << "a draft without fence takes the version it gets";
  EXPECT_EQ(record.attempt, 7u);
  EXPECT_EQ(record.status, Status::processing);
  EXPECT_EQ(record.fail_kind, FailKind::none);
  EXPECT_FALSE(record.tombstone);
  EXPECT_EQ(record.lease_until, now + 30s);
  EXPECT_EQ(record.retry_at, Time{});
  EXPECT_EQ(record.create_time, now);
  EXPECT_EQ(record.update_time, now);
  EXPECT_EQ(record.expires_at, now + 24h);
  EXPECT_EQ(record.result, "");
}

// Two winners of one key run the business twice.
TEST_P(StoreContract, InsertOnAKeyThatIsThereChangesNothing) {
  const Record first = insert({"", "", "k"}, processing(1)).held;
  store_clock().advance(1s);
  const Answer second = insert({"", "", "k"}, processing(2));
  ASSERT_EQ(second.state, State::stands);
  EXPECT_EQ(second.held, first);
  EXPECT_EQ(second.now, store_clock().now());
  EXPECT_EQ(held({"", "", "k"}), first);
}

// An insert that quietly replaced an expired record would take it without the version test.
TEST_P(StoreContract, InsertOnAnExpiredRecordFindsItStanding) {
  const Record first = insert({"", "", "k"}, processing(1)).held;
  store_clock().advance(48h);
  const Answer second = insert({"", "", "k"}, processing(2));
  if (frees_by_itself() && second.state == State::written) return;
  ASSERT_EQ(second.state, State::stands);
  EXPECT_EQ(second.held, first);
}

TEST_P(StoreContract, ReplaceAtTheRightVersionStoresEveryField) {
  const Time begin = store_clock().now();
  const Record first = insert({"", "", "k"}, processing()).held;
  store_clock().advance(5s);
  Draft draft = success(first, "");
  draft.status = Status::failed;
  draft.fail_kind = FailKind::retryable;
  draft.retry_after = 7s;
  draft.keep = 1h;
  draft.result = "503 upstream";
  const Answer answer = replace({"", "", "k"}, first.version, draft);
  ASSERT_EQ(answer.state, State::written) << ::testing::PrintToString(answer);
  const Record record = held({"", "", "k"});
  EXPECT_EQ(record, answer.held);
  EXPECT_GT(record.version, first.version);
  EXPECT_EQ(record.fence, first.fence) << "a given fence stays";
  EXPECT_EQ(record.status, Status::failed);
  EXPECT_EQ(record.fail_kind, FailKind::retryable);
  EXPECT_EQ(record.lease_until, Time{}) << "only a processing record has a lease";
  EXPECT_EQ(record.retry_at, begin + 12s);
  EXPECT_EQ(record.create_time, begin) << "the incarnation goes on";
  EXPECT_EQ(record.update_time, begin + 5s);
  EXPECT_EQ(record.expires_at, begin + 5s + 1h);
  EXPECT_EQ(record.result, "503 upstream");
}

// The fence check of every verb is this test: a stale worker must not write.
TEST_P(StoreContract, ReplaceAtAnotherVersionChangesNothing) {
  const Record first = insert({"", "", "k"}, processing(1)).held;
  const Record second = replace({"", "", "k"}, first.version, processing(2)).held;
  for (const std::uint64_t stale : {first.version, second.version - 1, second.version + 1,
                                    std::uint64_t{0}, second.fence - 1}) {
    if (stale == second.version) continue;
    const Answer answer = replace({"", "", "k"}, stale, success(first, "stale"));
    ASSERT_EQ(answer.state, State::stands) << "expected version " << stale;
    EXPECT_EQ(answer.held, second);
  }
  EXPECT_EQ(held({"", "", "k"}), second);
}

// A complete after the record went must not bring it back: an upsert would.
TEST_P(StoreContract, ReplaceOfNothingInsertsNothing) {
  const Record first = insert({"", "", "k"}, processing()).held;
  ASSERT_EQ(remove({"", "", "k"}, first.version).state, State::written);
  EXPECT_EQ(replace({"", "", "k"}, first.version, success(first, "late")).state, State::absent);
  EXPECT_EQ(load({"", "", "k"}).state, State::absent);
  EXPECT_EQ(replace({"", "", "never"}, 0, processing()).state, State::absent);
  EXPECT_EQ(load({"", "", "never"}).state, State::absent);
}

// The dead are not resurrected, not even at the very instant of expiry.
TEST_P(StoreContract, AnExpiredRecordIsReplacedOnlyByAFreshDraft) {
  Draft draft = processing();
  draft.keep = 60s;
  const Record before = insert({"", "", "k0"}, draft).held;
  const Record at = insert({"", "", "k1"}, draft).held;
  const Record after = insert({"", "", "k2"}, draft).held;
  store_clock().advance(60s - 1ms);
  EXPECT_EQ(replace({"", "", "k0"}, before.version, success(before, "r")).state, State::written);
  store_clock().advance(1ms);
  const auto not_written = [&](State state) {
    return state == State::stands || (frees_by_itself() && state == State::absent);
  };
  EXPECT_TRUE(not_written(replace({"", "", "k1"}, at.version, success(at, "r")).state));
  store_clock().advance(1ms);
  const Answer answer = replace({"", "", "k2"}, after.version, success(after, "r"));
  EXPECT_TRUE(not_written(answer.state));
  if (frees_by_itself()) return;
  EXPECT_EQ(answer.held, after);
  EXPECT_EQ(replace({"", "", "k1"}, at.version, processing(2)).state, State::written);
  EXPECT_EQ(replace({"", "", "k2"}, after.version, processing(2)).state, State::written);
}

TEST_P(StoreContract, AFreshDraftBeginsANewIncarnation) {
  const Record first = insert({"", "", "k"}, processing(1)).held;
  ASSERT_EQ(replace({"", "", "k"}, first.version, success(first, "old result")).state,
            State::written);
  const Record old = held({"", "", "k"});
  store_clock().advance(25h);
  if (frees_by_itself() && load({"", "", "k"}).state == State::absent) return;
  const Answer answer = replace({"", "", "k"}, old.version, processing(2));
  ASSERT_EQ(answer.state, State::written);
  EXPECT_EQ(answer.held.create_time, store_clock().now());
  EXPECT_EQ(answer.held.result, "") << "no byte of the old incarnation";
  EXPECT_EQ(answer.held.status, Status::processing);
  EXPECT_GT(answer.held.fence, old.fence);
}

// A fresh draft need not find the record expired: the state machine decides, not the store.
TEST_P(StoreContract, AFreshDraftReplacesALiveRecordToo) {
  const Record first = insert({"", "", "k"}, processing(1)).held;
  const Answer answer = replace({"", "", "k"}, first.version, processing(2));
  ASSERT_EQ(answer.state, State::written);
  EXPECT_EQ(answer.held.owner, owner_of(2));
}

// The version is what compare-and-swap tests: two writes at one instant must differ.
TEST_P(StoreContract, VersionsGrowWhileTheClockStands) {
  Record record = insert({"", "", "k"}, processing()).held;
  for (int i = 0; i < 10; ++i) {
    const Answer answer = replace({"", "", "k"}, record.version, renewal(record));
    ASSERT_EQ(answer.state, State::written);
    ASSERT_GT(answer.held.version, record.version);
    ASSERT_EQ(answer.held.fence, record.fence);
    record = answer.held;
  }
}

TEST_P(StoreContract, VersionsFollowTheClock) {
  const Record first = insert({"", "", "k"}, processing()).held;
  store_clock().advance(1h);
  const Answer answer = replace({"", "", "k"}, first.version, renewal(first));
  EXPECT_GE(answer.held.version, micros(store_clock().now()));
}

// A counter kept inside the record starts again after a removal, and an old token fits again.
TEST_P(StoreContract, FencesGrowOverRemovalAtOneInstant) {
  std::uint64_t last = 0;
  for (int i = 0; i < 20; ++i) {
    const Answer made = insert({"", "", "k"}, processing());
    ASSERT_EQ(made.state, State::written);
    ASSERT_GT(made.held.fence, last) << "incarnation " << i;
    const Answer grown = replace({"", "", "k"}, made.held.version, renewal(made.held));
    ASSERT_EQ(grown.state, State::written);
    last = grown.held.version;
    ASSERT_EQ(remove({"", "", "k"}, last).state, State::written);
  }
}

TEST_P(StoreContract, FencesGrowOverASweep) {
  Draft draft = processing();
  draft.keep = 1ms;
  Record record = insert({"", "", "k"}, draft).held;
  for (int i = 0; i < 50; ++i) {  // 50 versions ahead of a clock that moves 1 ms
    draft.fresh = true;
    record = replace({"", "", "k"}, record.version, draft).held;
  }
  store_clock().advance(1ms);
  expect_count(store().sweep(10).value(), 1);
  const Answer again = insert({"", "", "k"}, draft);
  ASSERT_EQ(again.state, State::written);
  EXPECT_GT(again.held.fence, record.version);
}

TEST_P(StoreContract, LoadTellsWhatStandsExpiredOrNot) {
  EXPECT_EQ(load({"", "", "k"}).state, State::absent);
  EXPECT_EQ(load({"", "", "k"}).now, store_clock().now());
  const Record record = insert({"", "", "k"}, processing()).held;
  EXPECT_EQ(load({"", "", "k"}).held, record);
  store_clock().advance(48h);
  const Answer answer = load({"", "", "k"});
  EXPECT_EQ(answer.now, store_clock().now());
  if (frees_by_itself() && answer.state == State::absent) return;
  EXPECT_EQ(answer.state, State::stands);
  EXPECT_EQ(answer.held, record);
}

TEST_P(StoreContract, RemoveTestsTheVersion) {
  EXPECT_EQ(remove({"", "", "k"}, 1).state, State::absent);
  const Record record = insert({"", "", "k"}, processing()).held;
  const Answer refused = remove({"", "", "k"}, record.version + 1);
  ASSERT_EQ(refused.state, State::stands);
  EXPECT_EQ(refused.held, record);
  EXPECT_EQ(held({"", "", "k"}), record);
  const Answer removed = remove({"", "", "k"}, record.version);
  EXPECT_EQ(removed.state, State::written);
  EXPECT_EQ(removed.now, store_clock().now());
  EXPECT_EQ(load({"", "", "k"}).state, State::absent);
  EXPECT_EQ(remove({"", "", "k"}, record.version).state, State::absent);
}

TEST_P(StoreContract, AnExpiredRecordCanBeRemoved) {
  const Record record = insert({"", "", "k"}, processing()).held;
  store_clock().advance(48h);
  const State state = remove({"", "", "k"}, record.version).state;
  EXPECT_TRUE(state == State::written || (frees_by_itself() && state == State::absent));
  EXPECT_EQ(load({"", "", "k"}).state, State::absent);
}

// A watcher that is never called waits for nothing.
TEST_P(StoreContract, WatchersHearOfReplaceAndRemove) {
  IDEM_NEEDS(watches);
  const Record first = insert({"", "", "k"}, processing()).held;
  int replaced = 0;
  ASSERT_TRUE(store().watch({"", "", "k"}, [&] { ++replaced; }));
  const Record second = replace({"", "", "k"}, first.version, success(first, "r")).held;
  EXPECT_EQ(replaced, 1);
  int removed = 0;
  ASSERT_TRUE(store().watch({"", "", "k"}, [&] { ++removed; }));
  (void)remove({"", "", "k"}, second.version);
  EXPECT_EQ(removed, 1);
  EXPECT_EQ(replaced, 1) << "a watcher is called once";
}

TEST_P(StoreContract, AWatcherMayCallTheStore) {
  IDEM_NEEDS(watches);
  const Record first = insert({"", "", "k"}, processing()).held;
  State seen = State::failed;
  ASSERT_TRUE(store().watch({"", "", "k"}, [&] { seen = load({"", "", "k"}).state; }));
  (void)remove({"", "", "k"}, first.version);
  EXPECT_EQ(seen, State::absent);
}

TEST_P(StoreContract, CapabilitiesSayWhatTheStoreIs) {
  EXPECT_FALSE(capabilities().backend.empty());
  EXPECT_GE(capabilities().result_bytes_max, kResultBytesDefault);
  if (!capabilities().watches) {
    EXPECT_FALSE(store().watch({"", "", "k"}, [] {}));
  }
}

}  // namespace
}  // namespace idem::conformance
