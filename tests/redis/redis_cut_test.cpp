// A connection cut after any byte of any verb (cut_trial.hpp).
//
// The normal run takes a sample of the bytes; IDEM_NIGHTLY=1 takes them all (over 4,000 cuts),
// IDEM_CUT_STRIDE=N every Nth.
#include <gtest/gtest.h>

#include <thread>

#include "idem/testing/cut_trial.hpp"
#include "redis_servers.hpp"

namespace idem::testing {
namespace {

using std::chrono::seconds;

class RedisCuts : public ::testing::TestWithParam<CutVerb> {
 protected:
  RedisServer server_;
  CutProxy proxy_{server_.port()};
};

TEST_P(RedisCuts, ACutAfterAnyByteIsResolvedByTheSameToken) {
  const auto stride = cut_stride(19, 1);
  const auto cut = open_redis("redis://127.0.0.1:" + std::to_string(proxy_.port()) +
                              "/0?timeout=40ms&connect_timeout=5s");
  CutTrial trial(proxy_, cut.value(), open_redis(server_.url("timeout=10s")).value(), seconds(10));
  trial.cut_all(GetParam(), stride, "redis");
  // Seven ways to be cut: 150 bytes at least of the four of a request.
  EXPECT_GT(trial.cuts(), 4 * 150 / static_cast<int>(stride));
}

INSTANTIATE_TEST_SUITE_P(Verbs, RedisCuts, ::testing::ValuesIn(kCutVerbs),
                         [](const auto& with) { return to_string(with.param); });

// What a client knows when its call fails: `unavailable` was surely not applied.
TEST(RedisCut, UnavailableIsNeverApplied) {
  RedisServer server;
  CutProxy proxy(server.port());
  const auto store = open_redis("redis://127.0.0.1:" + std::to_string(proxy.port()) +
                                "/0?timeout=40ms&connect_timeout=5s")
                         .value();
  RawRedis raw(server.port());
  int unavailable = 0, unknown = 0, applied = 0;
  for (int i = 0; i < 60; ++i) {
    constexpr int kCallers = 4;
    std::vector<Key> keys;
    std::vector<Insert> ops(kCallers);
    for (int c = 0; c < kCallers; ++c) {
      keys.emplace_back("k" + std::to_string(i) + "-" + std::to_string(c));
    }
    Load warm{KeyRef{"", "", "warm"}, {}};  // the connection is whole before it is cut
    do {
      store->load({&warm, 1});
    } while (warm.answer.state == Answer::State::failed);
    proxy.arm({i % 2 == 0 ? Cut::Side::request : Cut::Side::reply,
               static_cast<std::uint64_t>(i % 2 == 0 ? i * 4 : 0),
               i % 3 == 0 ? Cut::Kind::stall : Cut::Kind::rst});
    std::vector<std::thread> callers;
    for (int c = 0; c < kCallers; ++c) {
      callers.emplace_back([&, c] {
        const auto at = static_cast<std::size_t>(c);
        ops[at].key = keys[at];
        ops[at].draft.owner = Owner::random();
        ops[at].draft.keep = seconds(60);
        store->insert({&ops[at], 1});
      });
    }
    for (std::thread& caller : callers) caller.join();
    proxy.disarm();
    proxy.release();
    for (const Insert& op : ops) {
      const bool there = raw({"EXISTS", "idem:0:0:" + std::string(op.key.key)}).integer == 1;
      if (op.answer.state == Answer::State::written) {
        EXPECT_TRUE(there);
        ++applied;
      } else if (op.answer.error.code == errc::unavailable) {
        EXPECT_FALSE(there);
        ++unavailable;
      } else {
        EXPECT_EQ(op.answer.error.code, errc::unknown);
        ++unknown;
      }
    }
  }
  EXPECT_GT(unavailable, 0);
  EXPECT_GT(unknown, 0);
  EXPECT_GT(applied, 0);
  std::printf("%d unavailable, %d unknown, %d applied\n", unavailable, unknown, applied);
}

}  // namespace
}  // namespace idem::testing
