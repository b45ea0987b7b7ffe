// Callers that read for each other: whoever leads may leave, and the others still get their
// replies.
#include <gtest/gtest.h>

#include <boost/asio/post.hpp>
#include <future>
#include <memory>
#include <vector>

#include "idem/clock.hpp"
#include "loop.hpp"

namespace idem::redis {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

using GatheringPtr = std::shared_ptr<Gathering>;

GatheringPtr gathering_of(std::size_t pending) { return std::make_shared<Gathering>(pending); }

// Ends one exchange of the gathering, as a reply does: in the loop.
void reply_to(Loop& loop, const GatheringPtr& gathering) {
  boost::asio::post(loop.io(), [gathering] { Ringing().end_one(*gathering); });
}

Time in(Micros time) { return system_clock().now() + time; }

TEST(RedisLoop, RunsWhatIsDueWhileACallerWaits) {
  Loop loop;
  const auto gathering = gathering_of(2);
  reply_to(loop, gathering);
  loop.wait(*gathering, 1, in(seconds(20)));
  EXPECT_EQ(gathering->pending(), 1U);
  reply_to(loop, gathering);
  loop.wait(*gathering, 0, in(seconds(20)));
  EXPECT_EQ(gathering->pending(), 0U);
}

// Returns once its caller runs the loop.
std::future<void> lead(Loop& loop, const GatheringPtr& gathering, Micros time) {
  const auto leads = std::make_shared<std::promise<void>>();
  boost::asio::post(loop.io(), [leads] { leads->set_value(); });
  auto caller = std::async(std::launch::async, [&loop, gathering, until = in(time)] {
    loop.wait(*gathering, 0, until);
  });
  leads->get_future().wait();
  return caller;
}

TEST(RedisLoop, OneLeavesAtItsDeadlineAndTheOtherGetsItsReply) {
  for (const bool leader_is_hasty : {true, false}) {
    Loop loop;
    const auto hasty = gathering_of(1), patient = gathering_of(1);
    const Micros hastily = milliseconds(100), patiently = seconds(60);
    auto leader =
        lead(loop, leader_is_hasty ? hasty : patient, leader_is_hasty ? hastily : patiently);
    auto follower = std::async(std::launch::async, [&] {
      loop.wait(leader_is_hasty ? *patient : *hasty, 0, in(leader_is_hasty ? patiently : hastily));
    });
    (leader_is_hasty ? leader : follower).wait();
    EXPECT_EQ(hasty->pending(), 1U);
    reply_to(loop, patient);
    (leader_is_hasty ? follower : leader).wait();
    EXPECT_EQ(patient->pending(), 0U);
  }
}

TEST(RedisLoop, ManyCallersAllGetTheirs) {
  Loop loop;
  constexpr int kCallers = 8;
  constexpr int kCalls = 2000;
  std::vector<std::future<int>> callers;
  for (int c = 0; c < kCallers; ++c) {
    callers.push_back(std::async(std::launch::async, [&] {
      int answered = 0;
      for (int i = 0; i < kCalls; ++i) {
        const auto gathering = gathering_of(1);
        reply_to(loop, gathering);
        loop.wait(*gathering, 0, in(seconds(60)));
        answered += gathering->pending() == 0;
      }
      return answered;
    }));
  }
  for (auto& caller : callers) EXPECT_EQ(caller.get(), kCalls);
}

}  // namespace
}  // namespace idem::redis
