// Redis Cluster: slots, redirections, batches over several nodes.
#include <gtest/gtest.h>

#include "idem/clock.hpp"
#include "redis_servers.hpp"
#include "router.hpp"

namespace idem::testing {
namespace {

class RedisCluster : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    fixture_ = std::make_unique<Fixture>(redis_backend().fixture("cluster", {}).value());
  }
  static void TearDownTestSuite() { fixture_.reset(); }

  static std::unique_ptr<Fixture> fixture_;

  // The ports of the nodes, each with the slots it says it holds.
  static std::vector<std::uint16_t> ports() {
    RawRedis first(StoreUrl::parse(fixture_->url).value().port().value());
    std::set<std::uint16_t> found;
    for (const redis::Reply& range : first({"CLUSTER", "SLOTS"}).elements) {
      found.insert(static_cast<std::uint16_t>(range.elements[2].elements[1].integer));
    }
    return {found.begin(), found.end()};
  }
  // Where a key is, under the fixture's prefix.
  static std::string redis_key(const std::string& key) {
    return StoreUrl::parse(fixture_->url).value().text("prefix").value() + "0:0:" + key;
  }
  static std::string id_of(RawRedis& node) { return node({"CLUSTER", "MYID"}).text; }
};
std::unique_ptr<Fixture> RedisCluster::fixture_;

TEST_F(RedisCluster, ABatchIsSplitByNodeAndAnsweredInOrder) {
  IdempotencyService service(fixture_->store);
  std::vector<Request> requests;
  for (int i = 0; i < 200; ++i) requests.push_back(request("batch-" + std::to_string(i)));
  requests.push_back(request("batch-7"));
  const auto outcomes = service.claim_many(requests);
  for (std::size_t i = 0; i < 200; ++i) {
    ASSERT_TRUE(outcomes[i].has_value()) << outcomes[i].error().message;
    EXPECT_TRUE(std::holds_alternative<Claimed>(*outcomes[i])) << i;
  }
  EXPECT_TRUE(std::holds_alternative<InProgress>(*outcomes[200]));
  int nodes_with_keys = 0;
  for (const std::uint16_t port : ports()) {
    nodes_with_keys += RawRedis(port)({"DBSIZE"}).integer > 0;
  }
  EXPECT_EQ(nodes_with_keys, 3);
  EXPECT_GE(fixture_->store->stats().value().processing, 200U);
  ListQuery query;
  query.limit = 1000;
  EXPECT_GE(fixture_->store->list(query).value().items.size(), 200U);
}

// A slot in the middle of its move answers ASK for keys that are gone already, MOVED afterwards.
TEST_F(RedisCluster, AMovingSlotIsFollowed) {
  IdempotencyService service(fixture_->store);
  const std::string key = "mover";
  const auto slot = redis::slot_of(redis_key(key));
  std::unique_ptr<RawRedis> from, to;
  std::uint16_t to_port = 0;
  for (const std::uint16_t port : ports()) {
    auto node = std::make_unique<RawRedis>(port);
    const bool holds = !(*node)({"GET", redis_key(key)}).is_error();
    if (holds) {
      from = std::move(node);
    } else if (!to) {
      to = std::move(node);
      to_port = port;
    }
  }
  ASSERT_TRUE(from && to);
  auto claim = service.claim(request(key));
  ASSERT_TRUE(claim.has_value() && std::holds_alternative<Claimed>(*claim));
  Lease& lease = std::get<Claimed>(*claim).lease;

  const std::string number = std::to_string(slot);
  ASSERT_FALSE((*to)({"CLUSTER", "SETSLOT", number, "IMPORTING", id_of(*from)}).is_error());
  ASSERT_FALSE((*from)({"CLUSTER", "SETSLOT", number, "MIGRATING", id_of(*to)}).is_error());
  ASSERT_EQ(
      (*from)({"MIGRATE", "127.0.0.1", std::to_string(to_port), redis_key(key), "0", "5000"}).text,
      "OK");
  const auto renewed = service.renew(lease);  // ASK
  ASSERT_TRUE(renewed.has_value()) << renewed.error().message;
  EXPECT_TRUE(std::holds_alternative<Renewed>(*renewed));

  const std::string new_owner = id_of(*to);
  ASSERT_FALSE((*to)({"CLUSTER", "SETSLOT", number, "NODE", new_owner}).is_error());
  ASSERT_FALSE((*from)({"CLUSTER", "SETSLOT", number, "NODE", new_owner}).is_error());
  const auto done = service.complete(lease, "moved");  // MOVED
  ASSERT_TRUE(done.has_value()) << done.error().message;
  EXPECT_TRUE(std::holds_alternative<Completed>(*done));
  const auto replay = service.claim(request(key));
  ASSERT_TRUE(replay.has_value() && std::holds_alternative<Replay>(*replay));
  EXPECT_EQ(std::get<Replay>(*replay).result, "moved");
}

TEST_F(RedisCluster, APlainUrlToANodeIsRefusedWithTheRightForm) {
  const auto refused = open_redis("redis://127.0.0.1:" + std::to_string(ports()[0]));
  ASSERT_FALSE(refused.has_value());
  EXPECT_EQ(refused.error().code, errc::cannot_open);
  EXPECT_NE(refused.error().message.find("redis+cluster://"), std::string::npos);
}

}  // namespace
}  // namespace idem::testing
