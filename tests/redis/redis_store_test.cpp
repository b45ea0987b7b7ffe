// The store's contract on a real server: what the conformance suite cannot see from outside.
#include "idem/redis_store.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "record_codec.hpp"
#include "redis_servers.hpp"

namespace idem::testing {
namespace {

using std::chrono::seconds;

Draft claim_draft() {
  Draft draft;
  draft.owner = Owner::random();
  draft.request_hash = Fingerprint::of_bytes("r");
  draft.lease = seconds(30);
  draft.keep = seconds(60);
  return draft;
}

Answer insert_one(RedisStore& store, const Key& key, const Draft& draft) {
  Insert op{key, draft, {}};
  store.insert({&op, 1});
  return op.answer;
}

Answer load_one(RedisStore& store, const Key& key) {
  Load op{key, {}};
  store.load({&op, 1});
  return op.answer;
}

Answer remove_one(RedisStore& store, const Key& key, std::uint64_t version) {
  Remove op{key, version, {}};
  store.remove({&op, 1});
  return op.answer;
}

Answer replace_one(RedisStore& store, const Key& key, std::uint64_t version, const Draft& draft) {
  Replace op{key, version, draft, {}};
  store.replace({&op, 1});
  return op.answer;
}

class RedisStoreTest : public ::testing::Test {
 protected:
  static void SetUpTestSuite() { server_ = std::make_unique<RedisServer>(); }
  static void TearDownTestSuite() { server_.reset(); }
  void SetUp() override {
    raw_ = std::make_unique<RawRedis>(server_->port());
    (*raw_)({"FLUSHALL"});
  }
  static std::unique_ptr<RedisServer> server_;
  std::unique_ptr<RawRedis> raw_;
};
std::unique_ptr<RedisServer> RedisStoreTest::server_;

TEST_F(RedisStoreTest, WritesReadsReplacesAndRemovesOneRecord) {
  const auto store = open_redis(server_->url()).value();
  const Key key("acme", "pay", "k-1");
  Draft draft = claim_draft();
  const Answer written = insert_one(*store, key, draft);
  ASSERT_EQ(written.state, Answer::State::written) << written.error.message;
  EXPECT_EQ(written.held.version, written.held.fence);
  EXPECT_EQ(written.held.lease_until, written.now + seconds(30));

  const Answer read = load_one(*store, key);
  ASSERT_EQ(read.state, Answer::State::stands) << read.error.message;
  EXPECT_EQ(read.held, written.held);
  EXPECT_EQ(insert_one(*store, key, claim_draft()).held, written.held);

  draft.status = Status::success;
  draft.fence = written.held.fence;
  draft.fresh = false;
  draft.result = std::string_view("\0\r\n$5\xff", 6);
  const Answer done = replace_one(*store, key, written.held.version, draft);
  ASSERT_EQ(done.state, Answer::State::written) << done.error.message;
  EXPECT_GT(done.held.version, written.held.version);
  EXPECT_EQ(done.held.create_time, written.held.create_time);
  EXPECT_EQ(load_one(*store, key).held, done.held);
  EXPECT_EQ(replace_one(*store, key, written.held.version, draft).state, Answer::State::stands);

  EXPECT_EQ(remove_one(*store, key, written.held.version).state, Answer::State::stands);
  EXPECT_EQ(remove_one(*store, key, done.held.version).state, Answer::State::written);
  EXPECT_EQ(load_one(*store, key).state, Answer::State::absent);
  EXPECT_EQ(remove_one(*store, key, done.held.version).state, Answer::State::absent);
  EXPECT_EQ(replace_one(*store, key, done.held.version, draft).state, Answer::State::absent);
}

// A fence that fell would let a removed attempt write over its successor.
TEST_F(RedisStoreTest, VersionsGrowOverRemovalWhileAVirtualClockStandsStill) {
  VirtualClock clock;
  const auto store = open_redis(server_->url(), &clock).value();
  std::uint64_t last = 0;
  for (int i = 0; i < 20; ++i) {
    const Answer written = insert_one(*store, "k", claim_draft());
    ASSERT_EQ(written.state, Answer::State::written) << written.error.message;
    EXPECT_EQ(written.now, clock.now());
    EXPECT_GT(written.held.version, last);
    last = written.held.version;
    ASSERT_EQ(remove_one(*store, "k", last).state, Answer::State::written);
  }
}

// Redis's own expiry runs on real time; a record of a virtual clock must outlive it.
TEST_F(RedisStoreTest, ExpiredRecordsStandUntilReplacedByAFreshOne) {
  VirtualClock clock;
  const auto store = open_redis(server_->url(), &clock).value();
  const Answer written = insert_one(*store, "k", claim_draft());
  clock.advance(seconds(60));
  Answer read = load_one(*store, "k");
  ASSERT_EQ(read.state, Answer::State::stands);
  EXPECT_TRUE(read.held.expired(read.now));
  Draft draft = claim_draft();
  draft.fresh = false;
  EXPECT_EQ(replace_one(*store, "k", written.held.version, draft).state, Answer::State::stands);
  draft.fresh = true;
  const Answer again = replace_one(*store, "k", written.held.version, draft);
  ASSERT_EQ(again.state, Answer::State::written);
  EXPECT_EQ(again.held.create_time, clock.now());
}

TEST_F(RedisStoreTest, SweepListAndStatsSeeWhatIsThereAndNothingElse) {
  VirtualClock clock;
  const auto store = open_redis(server_->url("prefix=a*b:"), &clock).value();
  (*raw_)({"SET", "aXb:3:foreign", "not ours"});
  (*raw_)({"SET", "a*b:junk", "not a record's name"});
  Draft brief = claim_draft();
  brief.keep = seconds(1);
  for (int i = 0; i < 40; ++i) {
    const Key key("", "", "k" + std::to_string(i) + (i % 2 == 0 ? "{x}" : ""));
    ASSERT_EQ(insert_one(*store, key, i < 10 ? brief : claim_draft()).state,
              Answer::State::written);
  }
  clock.advance(seconds(1));
  const StoreStats stats = store->stats().value();
  EXPECT_EQ(stats.processing, 40U);
  EXPECT_EQ(stats.expired, 10U);
  EXPECT_GT(stats.bytes, 40U * 139U);

  ListQuery query;
  query.limit = 7;
  std::set<std::string> listed;
  int pages = 0;
  do {
    const Page page = store->list(query).value();
    EXPECT_EQ(page.now, clock.now());
    for (const Listed& item : page.items) EXPECT_TRUE(listed.insert(item.key.key).second);
    query.cursor = page.cursor;
    ++pages;
  } while (!query.cursor.empty());
  EXPECT_EQ(listed.size(), 30U);
  EXPECT_EQ(pages, 5);

  EXPECT_EQ(store->sweep(4).value(), 4U);
  EXPECT_EQ(store->sweep(100).value(), 6U);
  EXPECT_EQ(store->sweep(100).value(), 0U);
  EXPECT_EQ(store->stats().value().records(), 30U);
  EXPECT_EQ((*raw_)({"EXISTS", "aXb:3:foreign", "a*b:junk"}).integer, 2);
}

// Whatever happens to the bytes, they are never given out as somebody's result.
TEST_F(RedisStoreTest, ChangedBytesAreCorruptAndSoAreStrangers) {
  const auto store = open_redis(server_->url()).value();
  ASSERT_EQ(insert_one(*store, "k", claim_draft()).state, Answer::State::written);
  const std::string key = "idem:0:0:k";
  std::string stored = (*raw_)({"GET", key}).text;
  ASSERT_GE(stored.size(), redis::kResultAt);
  stored[100] = static_cast<char>(stored[100] ^ 4);
  (*raw_)({"SET", key, stored});
  EXPECT_EQ(load_one(*store, "k").error.code, errc::corrupt);
  EXPECT_EQ(insert_one(*store, "k", claim_draft()).error.code, errc::corrupt);
  (*raw_)({"DEL", key});
  (*raw_)({"RPUSH", key, "a list"});
  EXPECT_EQ(insert_one(*store, "k", claim_draft()).error.code, errc::corrupt);
}

TEST_F(RedisStoreTest, BatchesAnswerPerItemAndInOrderAlsoForOneKeyTwice) {
  const auto store = open_redis(server_->url()).value();
  const std::vector<Key> keys{"a", "b", "a", "c"};
  std::vector<Insert> ops;
  for (const Key& key : keys) ops.push_back({key, claim_draft(), {}});
  (*raw_)({"SCRIPT", "FLUSH"});
  store->insert(ops);
  EXPECT_EQ(ops[0].answer.state, Answer::State::written) << ops[0].answer.error.message;
  EXPECT_EQ(ops[1].answer.state, Answer::State::written);
  EXPECT_EQ(ops[2].answer.state, Answer::State::stands);
  EXPECT_EQ(ops[2].answer.held.owner, ops[0].draft.owner);
  EXPECT_EQ(ops[3].answer.state, Answer::State::written);
}

TEST_F(RedisStoreTest, UnixSocketsAndNumberedDatabasesWork) {
  const std::string socket = server_->directory() + "/socket";
  const auto in_two = open_redis("redis+unix://" + socket + "?db=2").value();
  const auto in_zero = open_redis(server_->url()).value();
  ASSERT_EQ(insert_one(*in_two, "k", claim_draft()).state, Answer::State::written);
  EXPECT_EQ(load_one(*in_zero, "k").state, Answer::State::absent);
  EXPECT_EQ(load_one(*in_two, "k").state, Answer::State::stands);
}

TEST(RedisUrl, RefusesWhatItCannotMean) {
  const auto refused = [](std::string_view url) {
    const auto opened = open_redis(url);
    return !opened && opened.error().code == errc::invalid_argument;
  };
  EXPECT_TRUE(refused("redis:host"));
  EXPECT_TRUE(refused("redis://"));
  EXPECT_TRUE(refused("redis://h/x"));
  EXPECT_TRUE(refused("redis://h/0?timeuot=1s"));
  EXPECT_TRUE(refused("redis://h/0?timeout=100"));
  EXPECT_TRUE(refused("redis://user@h/0"));
  EXPECT_TRUE(refused("redis://h/0?eviction=maybe"));
  EXPECT_TRUE(refused("redis+unix://host/path"));
  EXPECT_TRUE(refused("redis+cluster://h/1"));
  EXPECT_TRUE(refused("redis://h/0?ca=file"));
  EXPECT_TRUE(refused("redis://h/0?min_durability=eternal"));
}

}  // namespace
}  // namespace idem::testing
