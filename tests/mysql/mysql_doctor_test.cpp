// What `idem store doctor` says that no setting of a running server can bring about.
#include <gmock/gmock.h>

#include "idem/clock.hpp"
#include "support.hpp"

namespace idem::mysql_test {
namespace {

using ::testing::HasSubstr;
using Severity = Finding::Severity;

Findings diagnose(const testing::ServerFixture& of, const Database& database,
                  DiagnoseOptions options = {}) {
  const auto url = StoreUrl::parse(of.socket_url(database.name()));
  if (!url) throw std::runtime_error(url.error().message);
  return mysql_backend().diagnose(*url, options);
}

Finding find(const Findings& findings, std::string_view setting) {
  for (const Finding& finding : findings)
    if (finding.setting == setting) return finding;
  ADD_FAILURE() << "nothing is said about " << setting;
  return {};
}

TEST(MysqlDoctor, AClockThatIsNinetySecondsOffIsBad) {
  const Database database;
  (void)open(database.options());
  for (const Micros off : {Micros(90s), Micros(-90s)}) {
    VirtualClock ours(system_clock().now() - off);
    DiagnoseOptions options;
    options.open.clock = &ours;
    const Finding clock = find(diagnose(server(), database, options), "clock");
    EXPECT_EQ(clock.severity, Severity::bad);
    // The virtual clock stands still meanwhile.
    EXPECT_THAT(clock.what, HasSubstr(off > Micros(0) ? " s ahead" : " s behind"));
    EXPECT_THAT(clock.remedy, HasSubstr("NTP"));
  }
  EXPECT_EQ(find(diagnose(server(), database), "clock").severity, Severity::ok);
}

// After a power cut a binary log that lags behind decides which results are kept.
TEST(MysqlDoctor, ABinaryLogThatIsNotWrittenWithEachCommitIsTold) {
  const auto started =
      testing::ServerFixture::mariadb({"--log-bin=binlog", "--server-id=1", "--sync-binlog=0"});
  ASSERT_TRUE(started) << started.error().message;
  testing::ServerFixture& logging = **started;
  const Database database(logging, "");
  (void)open(database.options());
  DiagnoseOptions strict;
  strict.min_durability = Durability::power;
  const Finding lax = find(diagnose(logging, database), "sync_binlog");
  EXPECT_EQ(lax.severity, Severity::warn);
  EXPECT_THAT(lax.remedy, HasSubstr("SET GLOBAL sync_binlog = 1"));
  EXPECT_EQ(find(diagnose(logging, database, strict), "sync_binlog").severity, Severity::bad);
  Raw root(logging, "");
  root.run("SET GLOBAL sync_binlog = 1");
  EXPECT_EQ(find(diagnose(logging, database, strict), "sync_binlog").severity, Severity::ok);

  root.run("SET GLOBAL binlog_format = 'STATEMENT'");
  const Finding format = find(diagnose(logging, database), "binlog_format");
  EXPECT_EQ(format.severity, Severity::bad);
  EXPECT_THAT(format.remedy, HasSubstr("binlog_format = ROW"));
  // And so it is: no claim is taken.
  const StorePtr store = open(database.options());
  EXPECT_EQ(insert(*store, kKey, claim_of(Owner::random())).state, Answer::State::failed);
}

}  // namespace
}  // namespace idem::mysql_test
