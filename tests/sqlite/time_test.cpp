// H10: the store's time never goes back, whatever the clocks of its processes say; versions grow.
#include "helpers.hpp"

namespace idem {
namespace {

constexpr Time kNoon = kVirtualStart;

TEST(SqliteTime, VersionsGrowOverRemovalSweepAndReopening) {
  TempDir directory;
  VirtualClock clock;  // stands still: nothing but the store makes versions grow
  const Key key("k");
  std::uint64_t last = 0;
  for (int round = 0; round < 3; ++round) {
    const StorePtr store = open_or_die(directory.file(), &clock);
    Draft draft = claim_draft();
    draft.keep = Micros(0);
    const Answer first = insert(*store, key, draft);
    ASSERT_EQ(word(first), "written");
    EXPECT_GT(first.held.fence, last);
    const Answer renewed = replace(*store, key, first.held.version, draft);
    EXPECT_GT(renewed.held.version, first.held.version);
    last = renewed.held.version;
    if (round == 1) {
      EXPECT_EQ(*store->sweep(10), 1U);
    } else {
      ASSERT_EQ(word(remove(*store, key, last)), "written");
    }
    const Answer again = insert(*store, key);
    EXPECT_GT(again.held.fence, last);
    last = again.held.version;
    ASSERT_EQ(word(remove(*store, key, last)), "written");
  }
}

// The wall clock is set back by an hour and a new process comes: a lease of 60 s is not one of 61
// minutes for it.
TEST(SqliteTime, AJumpBackDoesNotLengthenALeaseForALaterProcess) {
  TempDir directory;
  VirtualClock before(kNoon);
  const Key key("k");
  std::uint64_t fence = 0;
  {
    const StorePtr store = open_or_die(directory.file(), &before);
    fence = insert(*store, key, claim_draft(seconds(60))).held.fence;
  }
  VirtualClock after(kNoon - hours(1));
  const StorePtr store = open_or_die(directory.file(), &after);
  const Answer seen = load(*store, key);
  EXPECT_EQ(seen.now, kNoon) << "goes on from the largest time written";
  after.advance(seconds(60));
  const Answer later = load(*store, key);
  EXPECT_EQ(later.now, seen.held.lease_until) << "the lease is over";
  const Answer takeover = replace(*store, key, later.held.version, claim_draft());
  ASSERT_EQ(word(takeover), "written");
  EXPECT_GT(takeover.held.fence, fence);
  EXPECT_EQ(takeover.held.update_time, kNoon + seconds(60));
}

// Two live processes whose clocks disagree: the faster one is followed, by reads too.
TEST(SqliteTime, AProcessThatIsBehindFollowsTheFile) {
  TempDir directory;
  VirtualClock slow(kNoon);
  VirtualClock fast(kNoon + seconds(90));
  const StorePtr here = open_or_die(directory.file(), &slow);
  const StorePtr there = open_or_die(directory.file(), &fast);
  const Key key("k");
  EXPECT_EQ(load(*here, key).now, kNoon);
  insert(*there, key, claim_draft(seconds(60)));
  EXPECT_EQ(load(*here, key).now, kNoon + seconds(90));
  slow.advance(seconds(1));
  const Answer duplicate = insert(*here, key);
  EXPECT_EQ(word(duplicate), "stands");
  EXPECT_EQ(duplicate.held.lease_until - duplicate.now, seconds(59));
}

// H07: a hundred years do not overflow.
TEST(SqliteTime, TheLongestTimesComeBackExactly) {
  TempDir directory;
  VirtualClock clock;
  const StorePtr store = open_or_die(directory.file(), &clock);
  Draft draft = claim_draft(kDurationMax);
  draft.keep = 2 * kDurationMax;
  insert(*store, Key("k"), draft);
  const Answer loaded = load(*store, Key("k"));
  EXPECT_EQ(loaded.held.lease_until, clock.now() + kDurationMax);
  EXPECT_EQ(loaded.held.expires_at, clock.now() + 2 * kDurationMax);
  clock.advance(kDurationMax);
  EXPECT_EQ(*store->sweep(10), 0U);
  clock.advance(kDurationMax);
  EXPECT_EQ(*store->sweep(10), 1U);
}

}  // namespace
}  // namespace idem
