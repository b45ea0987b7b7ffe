#include "load/session.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>

#include "idem/testing/reference_store.hpp"
#include "load/free_store.hpp"
#include "load/render.hpp"
#include "rigged_store.hpp"

namespace idem::bench {
namespace {

using namespace std::chrono_literals;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

Subject subject(const std::string& name, Rig rig) {
  return {name,
          [rig]() -> result<Fixture> {
            return Fixture{"", nullptr,
                           std::make_shared<RiggedStore>(
                               std::make_shared<testing::ReferenceStore>(system_clock()), rig,
                               system_clock())};
          },
          true};
}

SessionOptions short_session() {
  SessionOptions options;
  options.clients = {2};
  options.rounds = 6;
  options.round_time = 2s;
  options.workload.operations = 1200;
  options.workload.duplicates = 0.3;
  return options;
}

Report measure(const SessionOptions& options, const std::vector<Subject>& subjects,
               const OnProgress& progress = {}) {
  Report report;
  report.machine.cores = 2;
  const std::atomic<bool> stop{false};
  run_session(options, subjects, system_clock(), stop, progress, report);
  return report;
}

TEST(Session, RoundsAreInterleavedAndTheWarmUpIsNotCounted) {
  std::vector<std::string> order;
  SessionOptions options = short_session();
  options.rounds = 2;
  const Report report =
      measure(options, {subject("a", Rig::honest), subject("b", Rig::honest)},
              [&](const Progress& progress) { order.push_back(progress.subject); });
  EXPECT_THAT(order, ElementsAre("a", "b", "a", "b", "a", "b"));
  ASSERT_EQ(report.rows.size(), 2U);
  EXPECT_EQ(report.rows[0].rates.size(), 2U);
  EXPECT_EQ(report.rows[0].total.attempted, 2400U);
  EXPECT_FALSE(report.any_void());
}

struct Broken {
  Rig rig;
  const char* named;
};
class RiggedSession : public ::testing::TestWithParam<Broken> {};

// The row is void, for a stated reason, beside an honest row that is not.
TEST_P(RiggedSession, B34_VoidsItsRowAndNoOther) {
  SessionOptions options = short_session();
  options.rounds = 1;
  const Report report =
      measure(options, {subject("honest", Rig::honest), subject("rigged", GetParam().rig)});
  EXPECT_FALSE(report.rows[0].is_void()) << ::testing::PrintToString(report.rows[0].faults);
  EXPECT_THAT(report.rows[1].faults, Contains(HasSubstr(GetParam().named)));
  EXPECT_TRUE(report.any_void());
  const std::string text = results_text(report, 100);
  EXPECT_THAT(text, HasSubstr("VOID     rigged with 2 clients"));
  EXPECT_THAT(text, Not(HasSubstr("VOID     honest")));
  const Json json = to_json(report);
  EXPECT_FALSE(json["rows"][0]["void"].get<bool>());
  EXPECT_TRUE(json["rows"][1]["void"].get<bool>());
}

INSTANTIATE_TEST_SUITE_P(Stores, RiggedSession,
                         ::testing::Values(Broken{Rig::runs_twice, "executed twice"},
                                           Broken{Rig::replays_wrong, "not equal to the first"},
                                           Broken{Rig::loses_records, "lost after"},
                                           Broken{Rig::never_completes, "left processing"},
                                           Broken{Rig::fails_half, "of the operations failed"},
                                           Broken{Rig::stalls, "stalled"}));

TEST(Session, AStoreThatCannotBeOpenedIsSkippedWithItsReason) {
  SessionOptions options = short_session();
  options.rounds = 1;
  const Report report = measure(
      options,
      {{"absent", []() -> result<Fixture> { return fail(errc::cannot_open, "install it first"); },
        true},
       subject("here", Rig::honest)});
  EXPECT_THAT(report.rows[0].skipped, HasSubstr("install it first"));
  EXPECT_FALSE(report.any_void());
  EXPECT_EQ(report.rows[1].rates.size(), 1U);
  EXPECT_THAT(results_text(report, 100), HasSubstr("skipped  absent"));
}

// A store that is not ours is left as it was found.
TEST(Session, TakesItsRecordsAwayFromASharedStore) {
  const auto store = std::make_shared<testing::ReferenceStore>(system_clock());
  Insert foreign;
  const Key key("not-ours");
  foreign.key = key;
  foreign.draft.keep = foreign.draft.lease = 1h;
  store->insert({&foreign, 1});
  SessionOptions options = short_session();
  options.rounds = 1;
  const Report report = measure(options, {{"shared",
                                           [store]() -> result<Fixture> {
                                             return Fixture{"", nullptr, store};
                                           },
                                           false}});
  EXPECT_FALSE(report.any_void());
  EXPECT_EQ(store->stats()->records(), 1U);
}

TEST(Session, B40_AStoreThatCostsNothingIsMarkedClientBound) {
  Row row;
  row.clients = 2;
  row.rates = {900, 900, 900, 900, 900, 900};
  judge(row, {}, {}, 1000, 2);
  EXPECT_TRUE(row.client_bound);
  judge(row, {}, {}, 10'000, 2);
  EXPECT_FALSE(row.client_bound);
}

TEST(Session, AServersRowIsClientBoundByItsClientsProcessorTime) {
  Row row;
  row.clients = 4;
  row.server = true;
  row.rates = {900};
  row.total.elapsed = 1'000'000'000;
  row.total.cpu = 1'700'000'000;  // of two cores
  judge(row, {}, {}, 1e6, 2);
  EXPECT_TRUE(row.client_bound);
  row.total.cpu = 1'500'000'000;
  judge(row, {}, {}, 1e6, 2);
  EXPECT_FALSE(row.client_bound);
}

TEST(Session, B37_AnOfferedRateThatIsNotReachedIsSaidInWords) {
  Report report;
  report.rounds = 6;
  report.workload.rate = 20'000;
  Row row;
  row.store = "slow";
  row.rates = {14'000};
  judge(row, report.workload, report.limits, 0, 2);
  EXPECT_FALSE(row.reached);
  report.rows.push_back(row);
  EXPECT_THAT(results_text(report, 200),
              HasSubstr("offered 20.0k/s, achieved 14.0k/s: the queue grows"));
}

TEST(Session, B44_RolesAreApartInJsonAndCorrectedOnlyInTheOpenLoop) {
  SessionOptions options = short_session();
  options.workload.rate = 20'000;
  options.rounds = 1;
  const Json json = to_json(measure(options, {subject("a", Rig::honest)}));
  EXPECT_EQ(json["schema"], "idem.bench/1");
  const Json& row = json["rows"][0];
  for (const char* role : {"winner", "replay", "complete"})
    EXPECT_GT(row["latency_ns"][role]["count"].get<int>(), 0) << role;
  EXPECT_TRUE(row["latency_ns"]["takeover"].is_null());
  EXPECT_GE(row["corrected_latency_ns"]["winner"]["p99"].get<Nanos>(),
            row["latency_ns"]["winner"]["p50"].get<Nanos>());
  EXPECT_TRUE(row["rate"]["ci95"].is_null());  // one round
  options.workload.rate = 0;
  EXPECT_TRUE(
      to_json(measure(options, {subject("a", Rig::honest)}))["rows"][0]["corrected_latency_ns"]
          .is_null());
}

TEST(Session, FitsIntoItsBudget) {
  for (const std::size_t stores : {1U, 2U, 5U}) {
    SessionOptions options;
    options.clients = {1, 4, 16, 64};
    options.round_time = 2s;
    const SessionOptions fitted = fit_into(options, stores, 25s);
    EXPECT_LE(planned_time(fitted, stores), Micros(26s)) << stores;
    EXPECT_GT(fitted.round_time, Micros(0));
  }
}

}  // namespace
}  // namespace idem::bench
