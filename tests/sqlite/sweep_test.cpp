// H11: the sweep removes what is dead, all of it and nothing else.
#include <thread>
#include <vector>

#include "helpers.hpp"

namespace idem {
namespace {

void fill(IdempotencyStore& store, const std::string& prefix, int count, const Draft& draft) {
  std::vector<Key> keys;
  std::vector<Insert> ops;
  keys.reserve(static_cast<std::size_t>(count));
  for (int i = 0; i < count; ++i) {
    keys.emplace_back(prefix + std::to_string(i));
    ops.push_back({keys.back(), draft, {}});
  }
  store.insert(ops);
  for (const Insert& op : ops) ASSERT_EQ(word(op.answer), "written");
}

TEST(SqliteSweep, RemovesOnlyTheExpiredWhileOthersClaim) {
  TempDir directory;
  VirtualClock clock;
  const StorePtr store = open_or_die(directory.file(), &clock);
  Draft expired = claim_draft();
  expired.status = Status::success;
  expired.keep = seconds(10);
  Draft live = expired;
  live.keep = hours(1);
  fill(*store, "dead", 4'000, expired);
  fill(*store, "live", 3'000, live);
  fill(*store, "busy", 1'000, claim_draft(seconds(1)));  // lapsed, but not expired
  clock.advance(seconds(10));

  std::atomic<int> failures{0};
  std::vector<std::thread> claimers;
  for (int t = 0; t < 2; ++t) {
    claimers.emplace_back([&, t] {
      for (int i = 0; i < 50; ++i) {
        const Key key("new-" + std::to_string(t) + "-" + std::to_string(i));
        if (word(insert(*store, key)) != "written") ++failures;
      }
    });
  }
  std::atomic<std::uint64_t> removed{0};
  std::vector<std::thread> sweepers;
  for (int t = 0; t < 2; ++t) {
    sweepers.emplace_back([&] {
      for (;;) {
        const auto swept = store->sweep(700);
        if (!swept) ++failures;
        if (!swept || *swept == 0) return;
        EXPECT_LE(*swept, 700U);
        removed += *swept;
      }
    });
  }
  for (std::thread& thread : claimers) thread.join();
  for (std::thread& thread : sweepers) thread.join();
  EXPECT_EQ(failures, 0);
  EXPECT_EQ(removed, 4'000U);
  const auto stats = store->stats();
  EXPECT_EQ(stats->success, 3'000U);
  EXPECT_EQ(stats->processing, 1'100U);
  EXPECT_EQ(stats->expired, 0U);
}

TEST(SqliteSweep, StopsAtItsLimit) {
  VirtualClock clock;
  const StorePtr store = open_or_die(":memory:", &clock);
  Draft draft = claim_draft();
  draft.keep = seconds(1);
  fill(*store, "k", 30, draft);
  EXPECT_EQ(*store->sweep(100), 0U) << "not yet";
  clock.advance(seconds(1));
  EXPECT_EQ(*store->sweep(0), 0U);
  EXPECT_EQ(*store->sweep(20), 20U);
  EXPECT_EQ(*store->sweep(20), 10U);
  EXPECT_EQ(*store->sweep(20), 0U);
}

}  // namespace
}  // namespace idem
