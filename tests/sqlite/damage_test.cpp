// Rows that no writer of ours makes: never a replay, and never a free key.
#include <gmock/gmock.h>

#include <tuple>
#include <vector>

#include "helpers.hpp"
#include "idem/service.hpp"

namespace idem {
namespace {

using testing::HasSubstr;

struct Damage {
  const char* set;  // what an UPDATE of the row sets
  Status status;    // of the row before
};

// Every column on both sides of its range.
const std::vector<Damage> kDamages = {
    {"request_hash = ''", Status::success},
    {"request_hash = substr(request_hash, 2)", Status::success},
    {"request_hash = 'g' || substr(request_hash, 2)", Status::success},
    {"status = -1", Status::success},
    {"status = 3", Status::success},
    {"status = 256", Status::success},
    {"status = 2", Status::success},
    {"status = 1", Status::processing},
    {"status = 0", Status::success},
    {"status = 1", Status::failed},
    {"owner = ''", Status::success},
    {"owner = owner || '0'", Status::processing},
    {"version = 0", Status::success},
    {"version = -1", Status::success},
    {"version = 9223372036854775807", Status::success},
    {"version = 4611686018427387904", Status::processing},
    {"version = fence - 1", Status::success},
    {"fence = 0", Status::success},
    {"fence = -5", Status::success},
    {"fence = 9223372036854775807", Status::processing},
    {"fence = version + 1", Status::processing},
    {"attempt = 0", Status::success},
    {"attempt = -1", Status::success},
    {"attempt = 4294967296", Status::success},
    {"lease_until = -1", Status::processing},
    {"lease_until = 0", Status::processing},
    {"lease_until = update_time - 1", Status::processing},
    {"lease_until = 9223372036854775807", Status::processing},
    {"lease_until = 1", Status::success},
    {"lease_until = 1", Status::failed},
    {"retry_at = -1", Status::failed},
    {"retry_at = 0", Status::failed},
    {"retry_at = 9223372036854775807", Status::failed},
    {"retry_at = 1", Status::success},
    {"retry_at = 1", Status::processing},
    {"fail_kind = -1", Status::failed},
    {"fail_kind = 0", Status::failed},
    {"fail_kind = 4", Status::failed},
    {"fail_kind = 1", Status::success},
    {"fail_kind = 1", Status::processing},
    {"flags = -1", Status::success},
    {"flags = 2", Status::success},
    {"flags = 99", Status::success},
    {"create_time = -1", Status::success},
    {"create_time = update_time + 1", Status::success},
    {"create_time = 9223372036854775807", Status::success},
    {"update_time = -1", Status::success},
    {"update_time = 0", Status::processing},
    {"update_time = expires_at + 1", Status::success},
    {"expires_at = -1", Status::success},
    {"expires_at = 0", Status::success},
    {"expires_at = update_time - 1", Status::processing},
    {"expires_at = 9223372036854775807", Status::success},
    {"result_digest = x''", Status::success},
    {"result_digest = x'00'", Status::success},
    {"result_json = x''", Status::success},
    {"result_json = x'ff'", Status::success},
};

class SqliteDamage : public testing::TestWithParam<Damage> {
 protected:
  // A record of the wanted status; its request is "r".
  void make() {
    IdempotencyService service(store_, options());
    auto claimed = service.claim(request_).value();
    Lease lease = std::move(std::get<Claimed>(claimed).lease);
    if (GetParam().status == Status::success) (void)service.complete(lease, "paid");
    if (GetParam().status == Status::failed)
      (void)service.fail(lease, FailKind::retryable, "busy", seconds(1));
  }
  ServiceOptions options() {
    ServiceOptions options;
    options.clock = &clock_;
    return options;
  }
  void damage(const std::string& set) {
    RawConnection raw(directory_.file());
    ASSERT_EQ(raw.run("UPDATE idempotent_record SET " + set), SQLITE_OK) << set;
  }

  TempDir directory_;
  VirtualClock clock_;
  StorePtr store_ = open_or_die(directory_.file(), &clock_);
  Request request_{Key("pay-1"), Fingerprint::of_bytes("r")};
};

TEST_P(SqliteDamage, IsCorruptForEveryVerbAndFreesNothing) {
  make();
  damage(GetParam().set);
  const std::string before =
      RawConnection(directory_.file()).text("SELECT quote(version) FROM idempotent_record");
  IdempotencyService service(store_, options());
  // Also long after: what is damaged does not expire into a free key.
  for (const Micros later : {Micros(0), Micros(hours(24 * 400))}) {
    clock_.advance(later);
    const auto claim = service.claim(request_);
    ASSERT_FALSE(claim) << "claimed at " << later.count();
    EXPECT_EQ(claim.error().code, errc::corrupt) << claim.error().message;
    EXPECT_THAT(claim.error().message, HasSubstr("pay-1"));
    EXPECT_EQ(word(load(*store_, request_.key)), "corrupt");
    EXPECT_EQ(word(insert(*store_, request_.key)), "corrupt");
    if (later > Micros(0)) continue;  // by then it may well be over
    EXPECT_TRUE(store_->sweep(100));
    EXPECT_EQ(word(load(*store_, request_.key)), "corrupt") << "swept away";
  }
  EXPECT_EQ(RawConnection(directory_.file()).text("SELECT quote(version) FROM idempotent_record"),
            before);
}

INSTANTIATE_TEST_SUITE_P(Columns, SqliteDamage, testing::ValuesIn(kDamages));

// A floor carries the clock of every process of the file: a damaged one would end all leases.
TEST(SqliteDamagedMeta, IsCorruptForReadersAndWriters) {
  for (const char* set : {"time_floor = -1", "time_floor = 9223372036854775807",
                          "version_floor = -1", "version_floor = 9223372036854775807"}) {
    TempDir directory;
    const StorePtr store = open_or_die(directory.file());
    ASSERT_EQ(word(insert(*store, Key("k"))), "written");
    RawConnection raw(directory.file());
    ASSERT_EQ(raw.run(std::string("UPDATE idempotent_meta SET ") + set), SQLITE_OK);
    // A duplicate needs no version of its own.
    EXPECT_NE(word(insert(*store, Key("k"))), "written") << set;
    EXPECT_EQ(word(insert(*store, Key("new"))), "corrupt") << set;
    EXPECT_FALSE(store->sweep(10)) << set;
    if (std::string(set).starts_with("time")) {
      EXPECT_EQ(word(insert(*store, Key("k"))), "corrupt") << set;
      EXPECT_EQ(word(load(*store, Key("k"))), "corrupt") << set;
      EXPECT_FALSE(store->list({})) << set;
      EXPECT_FALSE(store->stats()) << set;
    }
  }
}

TEST(SqliteDamagedKey, IsListedAsCorrupt) {
  TempDir directory;
  const StorePtr store = open_or_die(directory.file());
  ASSERT_EQ(word(insert(*store, Key("k"))), "written");
  RawConnection raw(directory.file());
  ASSERT_EQ(raw.run("UPDATE idempotent_record SET idem_key = ''"), SQLITE_OK);
  const auto page = store->list({});
  ASSERT_FALSE(page);
  EXPECT_EQ(page.error().code, errc::corrupt);
}

}  // namespace
}  // namespace idem
