#include "contention/contention.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <condition_variable>
#include <map>
#include <mutex>

#include "idem/open.hpp"

namespace idem::bench {
namespace {

using namespace std::chrono_literals;
using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

TEST(KeyOfClaim, AHotKeyIsClaimedSixtyFourTimesAndThenGivesWay) {
  const KeyChoice one{KeyKind::hot, 1};
  EXPECT_EQ(key_of_claim(one, 0), 0U);
  EXPECT_EQ(key_of_claim(one, 63), 0U);
  EXPECT_EQ(key_of_claim(one, 64), 1U);
  const KeyChoice many{KeyKind::hot, 4};
  std::map<std::uint32_t, int> claims;
  for (std::uint64_t i = 0; i < 4 * 64; ++i) ++claims[key_of_claim(many, i)];
  EXPECT_EQ(claims.size(), 4U);
  for (const auto& [key, count] : claims) EXPECT_EQ(count, 64) << key;
  EXPECT_EQ(key_of_claim(many, 4 * 64), 4U);
  EXPECT_EQ(key_of_claim({KeyKind::unique}, 7), 7U);
}

TEST(Manner, IsJudgedByTheMedianAgainstTheWork) {
  const auto of = [](Nanos median) {
    Histogram loser;
    loser.record(median);
    return manner_of(loser, 50ms);
  };
  EXPECT_EQ(of(50'300'000), Manner::waits);
  EXPECT_EQ(of(49'000'000), Manner::between);
  EXPECT_EQ(of(5'100'000), Manner::between);
  EXPECT_EQ(of(4'900'000), Manner::refused);
  EXPECT_EQ(manner_of({}, 50ms), Manner::unknown);
}

// A table in this process, by whose rules a duplicate is refused, waits, or wins as well.
enum class Ways : std::uint8_t { refuses, waits, two_winners, wrong_replay, nobody_wins };

struct Board {
  std::mutex mutex;
  std::condition_variable ended;
  std::map<std::string, std::string> results;  // "": still running
};

class BoardAsker final : public Asker {
 public:
  BoardAsker(Board& board, Ways ways) : board_(board), ways_(ways) {}
  Heard claim(const Request& request) override {
    std::unique_lock lock(board_.mutex);
    ++costs_.trips;
    key_ = request.key.tenant + request.key.key;
    if (ways_ == Ways::nobody_wins) return Heard::failed;
    const auto [entry, fresh] = board_.results.try_emplace(key_);
    if (fresh || ways_ == Ways::two_winners) return Heard::won;
    if (entry->second.empty() && ways_ != Ways::waits) return Heard::running;
    if (entry->second.empty()) ++costs_.lock_waits;
    board_.ended.wait(lock, [&] { return !entry->second.empty(); });
    result_ = ways_ == Ways::wrong_replay ? "something else" : entry->second;
    return Heard::done;
  }
  bool complete(std::string_view result) override {
    const std::lock_guard lock(board_.mutex);
    board_.results[key_] = result;
    board_.ended.notify_all();
    return true;
  }
  void walk_away() override { (void)complete("left"); }

 private:
  Board& board_;
  const Ways ways_;
  std::string key_;
};

Contender on_board(Board& board, Ways ways) {
  Contender made;
  made.name = "board";
  made.enter = [&board, ways]() -> result<std::unique_ptr<Asker>> {
    return std::make_unique<BoardAsker>(board, ways);
  };
  return made;
}

ContentionOptions small() {
  ContentionOptions options;
  options.clients = {3};
  options.keys = {{KeyKind::hot, 1}};
  options.rounds = 1;
  options.round_time = 20ms;
  options.claims = 2000;
  options.storm_clients = 4;
  options.storms = 2;
  options.work = 20ms;
  return options;
}

Contention contend(std::vector<Contender> contenders, const ContentionOptions& options = small()) {
  const std::atomic<bool> stop{false};
  return run_contention(options, std::move(contenders), system_clock(), stop, {});
}

TEST(Storm, WhoStandsInLineWaitsForTheWorkWhoIsRefusedDoesNot) {
  Board refusing;
  Board lining;
  const Contention found =
      contend({on_board(refusing, Ways::refuses), on_board(lining, Ways::waits)});
  EXPECT_THAT(found.storm[0].faults, IsEmpty());
  EXPECT_THAT(found.storm[1].faults, IsEmpty());
  EXPECT_EQ(found.storm[0].total.storms, 2U);
  EXPECT_EQ(found.storm[1].total.results, 2U * 3);  // each loser once, with the result
  EXPECT_EQ(found.storm[1].total.refusals, 0U);
  EXPECT_GT(found.storm[0].total.refusals, 6U);
  EXPECT_EQ(found.storm[1].total.loser_costs.lock_waits, 2U * 3);
  EXPECT_DOUBLE_EQ(found.storm[0].total.trips_per_loser(), 1);
  EXPECT_GE(*found.storm[1].total.winner_total.quantile(0.01), 20'000'000);
}

struct Wrong {
  Ways ways;
  const char* named;
};
class WrongBoard : public ::testing::TestWithParam<Wrong> {};

TEST_P(WrongBoard, B34_MakesTheRowVoidForAStatedReason) {
  Board board;
  const Contention found = contend({on_board(board, GetParam().ways)});
  EXPECT_TRUE(found.any_void());
  EXPECT_THAT(found.storm[0].faults, Contains(HasSubstr(GetParam().named)));
  EXPECT_TRUE(to_json(found)["storm"][0]["void"].get<bool>());
}
INSTANTIATE_TEST_SUITE_P(Ways, WrongBoard,
                         ::testing::Values(Wrong{Ways::two_winners, "two winners"},
                                           Wrong{Ways::wrong_replay, "not the first result"},
                                           Wrong{Ways::nobody_wins, "no winner"}));

TEST(Grid, AKeyThatIsWonTwiceMakesTheRowVoid) {
  Board board;
  const Contention found = contend({on_board(board, Ways::two_winners)});
  EXPECT_THAT(found.grid[0].faults, Contains(HasSubstr("won twice")));
}

TEST(Grid, HasOneWinnerAKeyAndTheRatioToTheBareProtocol) {
  Board bare_board;
  Board board;
  Contender bare = on_board(bare_board, Ways::refuses);
  bare.name = "bare";
  Contender store = on_board(board, Ways::refuses);
  store.against = "bare";
  const Contention found = contend({std::move(bare), std::move(store)});
  EXPECT_FALSE(found.any_void()) << ::testing::PrintToString(found.grid[0].faults);
  const Json json = to_json(found);
  EXPECT_TRUE(json["grid"][0]["ratio_to_bare"].is_null());
  EXPECT_NEAR(json["grid"][1]["ratio_to_bare"].get<double>(),
              json["grid"][1]["rate"]["median"].get<double>() /
                  json["grid"][0]["rate"]["median"].get<double>(),
              1e-9);
}

// A server's own counts are those of the contender's rounds alone, warm-up left out.
TEST(Grid, TellsWhatTheServerCountedMeanwhile) {
  Board board;
  Costs counts{0, 1000, 0, 500, 7000};  // as they stood before anybody came
  Contender store = on_board(board, Ways::refuses);
  store.count = [&]() -> result<Costs> {
    counts.lock_waits += 3;
    counts.deadlocks += 1;
    counts.ids += 1'000'000;
    return counts;
  };
  const Contention found = contend({std::move(store)});
  ASSERT_FALSE(found.any_void());
  const Json json = to_json(found);
  const Json& grid = json["grid"][0];
  EXPECT_EQ(grid["lock_waits"], 3);
  EXPECT_EQ(grid["deadlocks"], 1);
  EXPECT_EQ(grid["ids_burnt"], 1'000'000 - grid["claims"]["won"].get<int>());
  EXPECT_EQ(json["storm"][0]["ids_burnt"], 1'000'000 - 2);  // two storms, a winner each
  EXPECT_EQ(json["storm"][0]["lock_waits"], 3);
}

TEST(Grid, SaysNothingOfDeadlocksAndIdsWhereNoServerCounts) {
  Board board;
  const Json json = to_json(contend({on_board(board, Ways::refuses)}));
  EXPECT_FALSE(json["grid"][0].contains("deadlocks"));
  EXPECT_FALSE(json["grid"][0].contains("ids_burnt"));
}

TEST(Contender, ATierIsHeldAgainstTheBareProtocolOfItsLastLayer) {
  std::vector<Contender> all;
  for (const char* name :
       {"mysql/articles bare INSERT", "mysql/clustered bare INSERT", "tiered/redis+mysql",
        "tiered/memory+redis+mysql", "tiered", "sqlite bare INSERT"}) {
    all.emplace_back();
    all.back().name = name;
  }
  set_against(all);
  EXPECT_EQ(all[2].against, "mysql/clustered bare INSERT");
  EXPECT_EQ(all[3].against, "mysql/clustered bare INSERT");
  EXPECT_EQ(all[4].against, "sqlite bare INSERT");
  EXPECT_EQ(all[0].against, "");
}

// What the README promises of the real stores that need no server.
TEST(Contention, LosersInsideATransactionWaitTheOthersAreRefused) {
  std::vector<Place> places;
  std::vector<Contender> contenders;
  for (const char* backend : {"sqlite", "tiered"}) {
    auto fixture = make_fixture(backend);
    ASSERT_TRUE(fixture) << fixture.error().message;
    places.push_back({backend, std::move(*fixture), true});
  }
  for (const Place& place : places) {
    for (Contender& one : contenders_at(place, system_clock()))
      contenders.push_back(std::move(one));
  }
  set_against(contenders);
  ContentionOptions options = small();
  options.work = 100ms;
  const Contention found = contend(contenders, options);
  std::map<std::string, Manner> manners;
  for (const StormRow& row : found.storm) {
    EXPECT_THAT(row.faults, IsEmpty()) << found.contenders[row.contender].name;
    manners[found.contenders[row.contender].name] = manner_of(row.total.loser, options.work);
  }
  EXPECT_EQ(manners.at("sqlite in transaction"), Manner::waits);
  EXPECT_EQ(manners.at("sqlite"), Manner::refused);
  EXPECT_EQ(manners.at("sqlite bare INSERT"), Manner::refused);
  EXPECT_EQ(manners.at("tiered"), Manner::refused);
  EXPECT_EQ(found.contenders.back().against, "sqlite bare INSERT");
}

TEST(Contention, FitsIntoItsBudget) {
  for (const std::size_t contenders : {2U, 8U, 14U}) {
    const ContentionOptions fitted = fit_into({}, contenders, 25s);
    EXPECT_LE(planned_time(fitted, contenders), Micros(28s)) << contenders;
    EXPECT_GE(fitted.rounds, 1U);
  }
}

}  // namespace
}  // namespace idem::bench
