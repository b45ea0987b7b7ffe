// What a column can hold, compare and count: the traps of SQL values.
#include <gmock/gmock.h>

#include <set>
#include <thread>
#include <vector>

#include "idem/service.hpp"
#include "idem/testing/matchers.hpp"
#include "support.hpp"

namespace idem::mysql_test {
namespace {

using State = Answer::State;
using namespace idem::testing;  // NOLINT: matchers

class MysqlValues : public EachLayout {};
IDEM_EACH_LAYOUT(MysqlValues);

// A collation that takes two keys for one loses a payment.
TEST_P(MysqlValues, H30KeysThatDifferInOneByteAreTwo) {
  for (const std::string_view collation :
       {"COLLATE utf8mb4_general_ci", "COLLATE latin1_swedish_ci", "COLLATE utf8mb4_bin"}) {
    const Database loose(collation);
    const StorePtr store = open(loose.options(GetParam()));
    for (const std::string_view key :
         {"api_4qD329Bz", "api_4qd329bz", "abc", "ABC", "\u00e1bc", "abc ", "\u03a9", "\u03c9", "e",
          "\u00e9", "k", "k ", "k  ", "K"}) {
      EXPECT_EQ(insert(*store, {"", "", key}, claim_of(Owner::random())).state, State::written)
          << key << " under " << collation;
    }
  }
}

// A lenient server cuts what is too long: two keys become one, a result loses its end.
TEST_P(MysqlValues, H31TheSessionIsStrictWhateverTheServerSays) {
  Raw root;
  root.run("SET GLOBAL sql_mode = ''");
  const StorePtr store = open(options());
  Raw in(database().name());
  in.run("ALTER TABLE idempotent_record MODIFY result_json VARBINARY(10) NOT NULL");
  const Answer claimed = insert(*store, kKey, claim_of(Owner::random()));
  ASSERT_EQ(claimed.state, State::written);
  const Answer cut =
      replace(*store, kKey, claimed.held.version, success_of(claimed.held, "more than ten bytes"));
  EXPECT_EQ(cut.state, State::failed);
  EXPECT_EQ(cut.error.code, errc::cannot_open);
  const Answer whole =
      replace(*store, kKey, claimed.held.version, success_of(claimed.held, "ten bytes."));
  EXPECT_EQ(whole.state, State::written);
  root.run("SET GLOBAL sql_mode = DEFAULT");
}

// Only error 1062 means "there is such a record".
TEST_P(MysqlValues, H31AnInsertThatFailsOtherwiseIsAnErrorNotADuplicate) {
  const StorePtr store = open(options());
  Raw in(database().name());
  in.run(
      "CREATE TRIGGER refuse BEFORE INSERT ON idempotent_record FOR EACH ROW "
      "BEGIN IF NEW.idem_key = 'bad' THEN SIGNAL SQLSTATE '45000' SET MESSAGE_TEXT = 'no'; END IF; "
      "END");
  std::vector<Insert> batch;
  for (const std::string_view key : {"a", "bad", "c"})
    batch.push_back({{"", "", key}, claim_of(Owner::random()), {}});
  store->insert(batch);
  EXPECT_EQ(batch[0].answer.state, State::written);
  EXPECT_EQ(batch[1].answer.state, State::failed);
  EXPECT_EQ(batch[2].answer.state, State::written);
  in.run("DROP TRIGGER refuse");
  in.run("ALTER TABLE idempotent_record DROP COLUMN retry_at");
  const Answer broken = insert(*store, {"", "", "d"}, claim_of(Owner::random()));
  EXPECT_EQ(broken.state, State::failed);
  EXPECT_EQ(broken.error.code, errc::cannot_open) << broken.error.message;
}

TEST_P(MysqlValues, H32ResultsOfEverySizeComeBackWhole) {
  const StorePtr store = open(options());
  const std::uint64_t most = store->capabilities().result_bytes_max;
  ASSERT_GE(most, std::uint64_t{15} << 20);
  int number = 0;
  for (const std::uint64_t size :
       {std::uint64_t{0}, std::uint64_t{1}, std::uint64_t{65'535}, std::uint64_t{65'536},
        std::uint64_t{117'465}, std::uint64_t{1} << 20, most}) {
    std::string result(size, '\0');
    for (std::size_t i = 0; i < result.size(); ++i) result[i] = static_cast<char>(i * 131 >> 3);
    const std::string key = "size" + std::to_string(number++);
    const KeyRef ref{"", "", key};
    const Answer claimed = insert(*store, ref, claim_of(Owner::random()));
    ASSERT_EQ(claimed.state, State::written);
    const Answer done =
        replace(*store, ref, claimed.held.version, success_of(claimed.held, result));
    ASSERT_EQ(done.state, State::written) << size << ": " << done.error.message;
    EXPECT_EQ(Fingerprint::of_bytes(load(*store, ref).held.result), Fingerprint::of_bytes(result));
  }
}

TEST_P(MysqlValues, H32AResultTooLargeIsRefusedBeforeItIsSent) {
  const StorePtr store = open(options());
  const Answer claimed = insert(*store, kKey, claim_of(Owner::random()));
  for (const std::uint64_t size :
       {store->capabilities().result_bytes_max + 1, std::uint64_t{17} << 20}) {
    const std::string large(size, 'x');
    const Answer refused =
        replace(*store, kKey, claimed.held.version, success_of(claimed.held, large));
    EXPECT_EQ(refused.error.code, errc::too_large);
  }
  EXPECT_EQ(load(*store, kKey).held, claimed.held);
  EXPECT_EQ(replace(*store, kKey, claimed.held.version, success_of(claimed.held, "small")).state,
            State::written);
}

// The largest result follows from the server's packet, not from hope.
TEST_P(MysqlValues, H32ASmallPacketBoundsTheResult) {
  Raw root;
  root.run("SET GLOBAL max_allowed_packet = 1048576");
  const StorePtr store = open(options());
  root.run("SET GLOBAL max_allowed_packet = DEFAULT");
  EXPECT_LT(store->capabilities().result_bytes_max, std::uint64_t{1} << 20);
  const Answer claimed = insert(*store, kKey, claim_of(Owner::random()));
  const std::string largest(store->capabilities().result_bytes_max, 'x');
  EXPECT_EQ(replace(*store, kKey, claimed.held.version, success_of(claimed.held, largest)).state,
            State::written);
}

// Refused inserts burn ids: an INT would be used up, and then even duplicates are errors.
TEST(MysqlIds, H33DuplicatesDoNotUseUpTheId) {
  const Database database;
  const auto options = database.options(MysqlOptions::Layout::articles);
  const StorePtr store = open(options);
  Raw in(database.name());
  in.run("ALTER TABLE idempotent_record AUTO_INCREMENT = 4294967293");
  IdempotencyService service(store);
  for (int i = 0; i < 10; ++i) {
    auto outcome = service.claim(request("k" + std::to_string(i)));
    ASSERT_THAT(outcome, IsClaimed());
    Lease lease = std::move(std::get<Claimed>(*outcome).lease);
    ASSERT_THAT(service.complete(lease, "done"), IsCompleted());
  }
  for (int i = 0; i < 1000; ++i)
    ASSERT_THAT(service.claim(request("k" + std::to_string(i % 10))), ReplayOf("done"));

  in.run("ALTER TABLE idempotent_record AUTO_INCREMENT = 18446744073709551615");
  EXPECT_THAT(service.claim(request("k3")), ReplayOf("done"));
  EXPECT_THAT(service.claim(request("new")), HasError(errc::capacity));
  EXPECT_THAT(service.claim(request("k4")), ReplayOf("done"));
}

// 2038 and beyond: times are numbers, not TIMESTAMPs.
TEST_P(MysqlValues, H07AHundredYearsCanBeStored) {
  const StorePtr store = open(options());
  Draft draft = claim_of(Owner::random(), kDurationMax);
  draft.keep = 2 * kDurationMax;
  const Answer claimed = insert(*store, kKey, draft);
  ASSERT_EQ(claimed.state, State::written) << claimed.error.message;
  EXPECT_EQ(claimed.held.lease_until, claimed.now + kDurationMax);
  EXPECT_EQ(load(*store, kKey).held.expires_at, claimed.now + 2 * kDurationMax);
}

TEST_P(MysqlValues, H15OneKeyOfTwoBusinessTypesOrTenantsIsTwo) {
  const StorePtr store = open(options());
  std::set<std::uint64_t> seen;
  for (const KeyRef key : {KeyRef{"", "pay", "1"}, KeyRef{"", "refund", "1"}, KeyRef{"", "", "1"},
                           KeyRef{"t", "pay", "1"}, KeyRef{"", "pa", "y1"}, KeyRef{"", "", "pay1"}})
    EXPECT_EQ(insert(*store, key, claim_of(Owner::random())).state, State::written);
}

TEST_P(MysqlValues, H16KeysOfEveryAllowedSizeAreKeptWhole) {
  const StorePtr store = open(options());
  const std::string tenant(kTenantBytesMax, 't');
  const std::string biz(kBizTypeBytesMax, 'b');
  const std::string key(kKeyBytesMax, 'k');
  const std::string shorter(kKeyBytesMax - 1, 'k');
  EXPECT_EQ(insert(*store, {tenant, biz, key}, claim_of(Owner::random())).state, State::written);
  EXPECT_EQ(insert(*store, {tenant, biz, shorter}, claim_of(Owner::random())).state,
            State::written);
  EXPECT_EQ(load(*store, {tenant, biz, key}).state, State::stands);
  EXPECT_EQ(load(*store, {"", biz, key}).state, State::absent);
}

// The caller's clock is not asked: only the server's decides.
class SkewedClock final : public Clock {
 public:
  explicit SkewedClock(Micros ahead) : ahead_(ahead) {}
  [[nodiscard]] Time now() const noexcept override { return system_clock().now() + ahead_; }
  [[nodiscard]] std::unique_ptr<Timers> timers() override { return system_clock().timers(); }
  void pause(Micros d) override { system_clock().pause(d); }
  [[nodiscard]] Micros offset() const noexcept override { return Micros(0); }

 private:
  Micros ahead_;
};

TEST_P(MysqlValues, H10AProcessWhoseClockIsWrongTakesNothingOver) {
  const StorePtr right = open(options());
  IdempotencyService first(right);
  CallOptions minute;
  minute.policy.lease = 60s;
  ASSERT_THAT(first.claim(request("k"), minute), IsClaimed());
  for (const auto ahead : {90s, -90s}) {
    SkewedClock clock{Micros(ahead)};
    MysqlOptions skewed = options();
    skewed.clock = &clock;
    ServiceOptions service_options;
    service_options.clock = &clock;
    IdempotencyService second(open(skewed), service_options);
    EXPECT_THAT(second.claim(request("k")), IsInProgress());
  }
}

// Fences grow over removal and re-insertion, even while the clock stands still or steps back.
TEST_P(MysqlValues, FencesGrowOverRemovalsWhileTheClockStandsStill) {
  VirtualClock clock;
  MysqlOptions virtual_time = options();
  virtual_time.clock = &clock;
  const StorePtr one = open(virtual_time);
  const StorePtr other = open(virtual_time);  // knows nothing of what the first one removed
  std::uint64_t last = 0;
  for (int i = 0; i < 20; ++i) {
    IdempotencyStore& store = i % 2 == 0 ? *one : *other;
    const Answer claimed = insert(store, kKey, claim_of(Owner::random()));
    ASSERT_EQ(claimed.state, State::written) << claimed.error.message;
    EXPECT_GT(claimed.held.fence, last);
    EXPECT_EQ(load(store, kKey).held, claimed.held);
    last = claimed.held.version;
    ASSERT_EQ(remove(store, kKey, last).state, State::written);
  }
}

// A wrong version must not become a floor: fences would jump out of the range of 64 bits.
TEST_P(MysqlValues, ARemovalOfAnotherVersionChangesNothing) {
  const StorePtr store = open(options());
  const Answer claimed = insert(*store, kKey, claim_of(Owner::random()));
  EXPECT_EQ(remove(*store, kKey, ~std::uint64_t{0}).state, State::stands);
  EXPECT_EQ(remove(*store, {"", "", "other"}, ~std::uint64_t{0}).state, State::absent);
  EXPECT_EQ(load(*store, kKey).held, claimed.held);
  EXPECT_EQ(Raw(database().name()).cell("SELECT version_floor FROM idempotent_record_meta"), "0");
}

// A row that was tampered with, or rotted, is an error and never a replay.
TEST_P(MysqlValues, AChangedResultIsCorrupt) {
  const StorePtr store = open(options());
  const Answer claimed = insert(*store, kKey, claim_of(Owner::random()));
  ASSERT_EQ(replace(*store, kKey, claimed.held.version, success_of(claimed.held, "paid")).state,
            State::written);
  Raw in(database().name());
  in.run("UPDATE idempotent_record SET result_json = 'PAID'");
  EXPECT_EQ(load(*store, kKey).error.code, errc::corrupt);
  EXPECT_EQ(insert(*store, kKey, claim_of(Owner::random())).error.code, errc::corrupt);
}

// Who won is read from statement and token, not from a row count that depends on client flags.
TEST_P(MysqlValues, H34SixteenThreadsAndOneWinnerPerKey) {
  constexpr int kThreads = 16;
  constexpr int kKeys = 60;
  const StorePtr store = open(options());
  std::atomic<int> written{0};
  std::atomic<int> errors{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&] {
      for (int k = 0; k < kKeys; ++k) {
        const std::string key = "key" + std::to_string(k);
        const Answer answer = insert(*store, {"", "", key}, claim_of(Owner::random()));
        if (answer.state == State::written) ++written;
        if (answer.state == State::failed) ++errors;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(written, kKeys);
  EXPECT_EQ(errors, 0);
}

// A write of equal values counts as no row for some clients: ours always writes a new version.
TEST_P(MysqlValues, H34AWriteOfTheSameValuesIsWrittenOnce) {
  const StorePtr store = open(options());
  const Answer claimed = insert(*store, kKey, claim_of(Owner::random()));
  const Draft draft = success_of(claimed.held, "same");
  const Answer first = replace(*store, kKey, claimed.held.version, draft);
  ASSERT_EQ(first.state, State::written);
  EXPECT_EQ(replace(*store, kKey, first.held.version, draft).state, State::written);
  const Answer stale = replace(*store, kKey, claimed.held.version, draft);
  EXPECT_EQ(stale.state, State::stands);
  EXPECT_EQ(stale.held.result, "same");
}

}  // namespace
}  // namespace idem::mysql_test
