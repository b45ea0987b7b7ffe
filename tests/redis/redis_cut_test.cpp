// A connection cut after every byte of every verb: nobody owns twice, nobody gets a wrong answer,
// nothing stays in doubt once it is sent again.
//
// The normal run takes a sample of the bytes; IDEM_NIGHTLY=1 takes them all (over 4,000 cuts).
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <thread>

#include "idem/clock.hpp"
#include "idem/testing/cut_proxy.hpp"
#include "redis_servers.hpp"

namespace idem::testing {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

bool nightly() { return std::getenv("IDEM_NIGHTLY") != nullptr; }

enum class Verb { claim, complete, renew, fail };
constexpr const char* kNames[] = {"claim", "complete", "renew", "fail"};

class RedisCuts : public ::testing::TestWithParam<Verb> {
 protected:
  RedisCuts()
      : proxy_(server_.port()),
        cut_store_(open_redis("redis://127.0.0.1:" + std::to_string(proxy_.port()) +
                              "/0?timeout=40ms&connect_timeout=5s")
                       .value()),
        whole_store_(open_redis(server_.url("timeout=10s")).value()),
        cut_(cut_store_),
        whole_(whole_store_) {}

  template <class T, class Result>
  static bool is(const Result& outcome) {
    return outcome.has_value() && std::holds_alternative<T>(*outcome);
  }

  // Until the answer is definite; as an application would, with the same token.
  template <class Call>
  auto resolved(Call call) {
    CallOptions options;
    options.timeout = seconds(10);
    auto outcome = call(options);
    for (int i = 0; !outcome && i < 200; ++i) {
      ++resent_;
      outcome = call(options);
    }
    return outcome;
  }

  Lease claim_whole(const std::string& key) {
    auto outcome = whole_.claim(request(key));
    if (!is<Claimed>(outcome)) throw std::runtime_error("not claimed: " + key);
    return std::move(std::get<Claimed>(*outcome).lease);
  }

  // Performs the verb through the proxy, and what it must have come to.
  bool claim(const std::string& key) {
    const Owner owner = Owner::random();
    auto outcome = resolved([&](CallOptions options) {
      options.owner = owner;
      return cut_.claim(request(key), options);
    });
    if (!is<Claimed>(outcome)) return false;
    proxy_.deliver_late();
    const auto found = whole_.get(Key(key)).value();
    return found && found->record.owner == owner && found->record.attempt == 1 &&
           found->record.status == Status::processing &&
           found->record.fence == std::get<Claimed>(*outcome).lease.fence() &&
           is<InProgress>(whole_.claim(request(key)));
  }

  bool complete(const std::string& key) {
    Lease lease = claim_whole(key);
    const auto outcome =
        resolved([&](const CallOptions& options) { return cut_.complete(lease, key, options); });
    if (!is<Completed>(outcome)) return false;
    proxy_.deliver_late();
    const auto replay = whole_.claim(request(key));
    return is<Replay>(replay) && std::get<Replay>(*replay).result == key;
  }

  bool renew(const std::string& key) {
    Lease lease = claim_whole(key);
    const auto outcome = resolved([&](CallOptions options) {
      options.policy.lease = seconds(300);
      return cut_.renew(lease, options);
    });
    if (!is<Renewed>(outcome)) return false;
    proxy_.deliver_late();
    const auto found = whole_.get(Key(key)).value();
    return found && found->record.token() == lease.token() && found->record.attempt == 1 &&
           found->record.lease_until - found->now > seconds(200) &&
           is<Completed>(cut_.complete(lease, "r"));
  }

  bool fail(const std::string& key) {
    Lease lease = claim_whole(key);
    const auto outcome = resolved([&](const CallOptions& options) {
      return cut_.fail(lease, FailKind::final, key, Micros(0), options);
    });
    if (!is<FailRecorded>(outcome)) return false;
    proxy_.deliver_late();
    const auto again = whole_.claim(request(key));
    return is<Failed>(again) && std::get<Failed>(*again).reason == key;
  }

  bool perform(Verb verb, const std::string& key) {
    switch (verb) {
      case Verb::claim:
        return claim(key);
      case Verb::complete:
        return complete(key);
      case Verb::renew:
        return renew(key);
      case Verb::fail:
        return fail(key);
    }
    return false;
  }

  static std::string key_of(int number) { return "key-" + std::to_string(100'000 + number); }

  RedisServer server_;
  CutProxy proxy_;
  std::shared_ptr<RedisStore> cut_store_, whole_store_;
  IdempotencyService cut_, whole_;
  int resent_ = 0;
};

TEST_P(RedisCuts, AfterEveryByteLeaveOneOwnerAndOneResult) {
  const Verb verb = GetParam();
  int number = 0;
  for (int warm = 0; warm < 2; ++warm) ASSERT_TRUE(perform(verb, key_of(number++)));
  const CutProxy::Bytes before = proxy_.passed();
  ASSERT_TRUE(perform(verb, key_of(number++)));
  const CutProxy::Bytes after = proxy_.passed();

  int cuts = 0, wrong = 0, not_fired = 0;
  const auto cut_at = [&](Cut cut) {
    bool fired = false;
    // The server's time may have a digit less: then the cut is behind the reply, and waits.
    for (int tries = 0; !fired && tries < 50; ++tries) {
      proxy_.arm(cut);
      const std::string key = key_of(number++);
      if (!perform(verb, key)) {
        ++wrong;
        ADD_FAILURE() << kNames[static_cast<int>(verb)] << " cut after byte " << cut.after
                      << " of the " << (cut.side == Cut::Side::request ? "request" : "reply")
                      << ", kind " << static_cast<int>(cut.kind);
      }
      fired = proxy_.fired();
      proxy_.disarm();
      proxy_.release();
    }
    not_fired += !fired;
    ++cuts;
  };
  const auto request_bytes = after.request - before.request;
  const auto reply_bytes = after.reply - before.reply;
  const std::uint64_t step = nightly() ? 1 : 23;
  for (const auto kind : {Cut::Kind::fin, Cut::Kind::rst, Cut::Kind::late, Cut::Kind::stall}) {
    for (std::uint64_t byte = 0; byte < request_bytes; byte += step) {
      cut_at({Cut::Side::request, byte, kind});
    }
    cut_at({Cut::Side::request, request_bytes - 1, kind});
    if (kind == Cut::Kind::late) continue;
    for (std::uint64_t byte = 0; byte < reply_bytes; byte += nightly() ? 1 : 7) {
      cut_at({Cut::Side::reply, byte, kind});
    }
  }
  std::printf("%s: %d cuts, %d sent again by the caller, %d wrong\n",
              kNames[static_cast<int>(verb)], cuts, resent_, wrong);
  EXPECT_EQ(not_fired, 0);
  EXPECT_GT(cuts, nightly() ? 1000 : 50);
}

INSTANTIATE_TEST_SUITE_P(Verbs, RedisCuts,
                         ::testing::Values(Verb::claim, Verb::complete, Verb::renew, Verb::fail),
                         [](const auto& with) { return kNames[static_cast<int>(with.param)]; });

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
