// A connection cut after any byte of any verb: whatever was lost is resolved by the same token.
// IDEM_NIGHTLY=1: every byte instead of a sample.
#include <gmock/gmock.h>

#include "cut_proxy.hpp"
#include "idem/service.hpp"
#include "idem/testing/matchers.hpp"
#include "support.hpp"

namespace idem::mysql_test {
namespace {

using State = Answer::State;
using namespace idem::testing;  // NOLINT: matchers

class MysqlCuts : public EachLayout {};
IDEM_EACH_LAYOUT(MysqlCuts);

struct CutCase {
  Way way;
  Cut cut;
};

// `unavailable` is a promise that nothing was applied, and the caller's to repeat.
template <class Verb>
auto insistently(Verb verb) {
  for (;;) {
    auto outcome = verb();
    if (outcome || outcome.error().code != errc::unavailable) return outcome;
    system_clock().pause(1ms);
  }
}

// Every verb, cut at one byte; whatever was lost is resolved by repeating with the same token.
class CutRun {
 public:
  CutRun(const Database& database, MysqlOptions::Layout layout)
      : proxy_(server().port()), direct_(open(database.options(layout))) {
    MysqlOptions options = database.options(layout);
    options.socket.clear();
    options.port = proxy_.port();
    options.connections = 1;
    options.timeout = 60ms;
    ServiceOptions service_options;
    service_options.timeout = 30s;
    service_ = std::make_unique<IdempotencyService>(open(options), service_options);
    warm_up();
  }

  // A connection with all its statements prepared: what is cut is the verb alone.
  void warm_up() {
    for (const bool keep : {true, false}) {
      const Request ours = request("warm" + std::to_string(++number_));
      auto outcome = insistently([&] { return service_->claim(ours); });
      ASSERT_THAT(outcome, IsClaimed());
      Lease lease = std::move(std::get<Claimed>(*outcome).lease);
      if (keep) {
        ASSERT_THAT(insistently([&] { return service_->complete(lease, "done"); }), IsCompleted());
      } else {
        ASSERT_THAT(insistently([&] { return service_->release(lease); }), IsReleased());
      }
    }
  }

  // Cuts one verb after its n-th byte; false once the verb is over before the cut comes.
  bool cut_claim(const CutCase& how, std::size_t n) {
    const Request ours = request("claim" + std::to_string(++number_));
    proxy_.arm(how.way, n, how.cut);
    // Another token each time: what was told as not applied must not have been.
    auto outcome = insistently([&] { return service_->claim(ours); });
    const bool cut = !proxy_.disarm();
    EXPECT_THAT(outcome, IsClaimed()) << n;
    if (outcome && std::holds_alternative<Claimed>(*outcome)) {
      const Lease& lease = std::get<Claimed>(*outcome).lease;
      const Record held = load(*direct_, ours.key).held;
      EXPECT_EQ(held.token(), lease.token()) << n;
      EXPECT_EQ(held.attempt, 1U) << n;
    }
    if (cut) warm_up();
    return cut;
  }

  template <class Verb, class Check>
  bool cut_report(const CutCase& how, std::size_t n, Verb verb, Check check) {
    const Request ours = request("report" + std::to_string(++number_));
    auto outcome = service_->claim(ours);
    EXPECT_THAT(outcome, IsClaimed());
    if (!outcome) return false;
    Lease lease = std::move(std::get<Claimed>(*outcome).lease);
    proxy_.arm(how.way, n, how.cut);
    verb(*service_, lease);
    const bool cut = !proxy_.disarm();
    check(load(*direct_, ours.key));
    if (cut) warm_up();
    return cut;
  }

 private:
  CutProxy proxy_;
  StorePtr direct_;
  std::unique_ptr<IdempotencyService> service_;
  int number_ = 0;
};

int cut_everywhere(CutRun& run, const CutCase& how, std::size_t stride) {
  int cuts = 0;
  const auto each = [&](auto one) {
    for (std::size_t n = 0; one(n); n += stride) ++cuts;
  };
  each([&](std::size_t n) { return run.cut_claim(how, n); });
  each([&](std::size_t n) {
    return run.cut_report(
        how, n,
        [](IdempotencyService& service, Lease& lease) {
          EXPECT_THAT(insistently([&] { return service.complete(lease, "paid"); }), IsCompleted());
        },
        [](const Answer& held) {
          EXPECT_EQ(held.held.status, Status::success);
          EXPECT_EQ(held.held.result, "paid");
        });
  });
  each([&](std::size_t n) {
    return run.cut_report(
        how, n,
        [](IdempotencyService& service, Lease& lease) {
          EXPECT_THAT(insistently([&] { return service.renew(lease); }), IsRenewed());
        },
        [](const Answer& held) { EXPECT_EQ(held.held.status, Status::processing); });
  });
  each([&](std::size_t n) {
    return run.cut_report(
        how, n,
        [](IdempotencyService& service, Lease& lease) {
          EXPECT_THAT(insistently([&] { return service.fail(lease, FailKind::final, "no"); }),
                      IsFailRecorded());
        },
        [](const Answer& held) { EXPECT_EQ(held.held.status, Status::failed); });
  });
  each([&](std::size_t n) {
    return run.cut_report(
        how, n,
        [](IdempotencyService& service, Lease& lease) {
          EXPECT_THAT(insistently([&] { return service.release(lease); }), IsReleased());
        },
        [](const Answer& held) { EXPECT_EQ(held.state, State::absent); });
  });
  return cuts;
}

TEST_P(MysqlCuts, ACutAfterAnyByteIsResolvedByTheSameToken) {
  CutRun run(database(), GetParam());
  const auto stride = std::size_t{nightly() ? 1U : 53U};
  int cuts = 0;
  for (const CutCase& how : {CutCase{Way::request, Cut::fin}, CutCase{Way::reply, Cut::fin},
                             CutCase{Way::request, Cut::rst}, CutCase{Way::reply, Cut::rst}})
    cuts += cut_everywhere(run, how, stride);
  for (const CutCase& how : {CutCase{Way::request, Cut::stall}, CutCase{Way::reply, Cut::stall},
                             CutCase{Way::request, Cut::late}})
    cuts += cut_everywhere(run, how, stride * 4);
  std::printf("cut points: %d\n", cuts);
  EXPECT_GT(cuts, nightly() ? 2000 : 100);
}

}  // namespace
}  // namespace idem::mysql_test
