// A connection cut after any byte of any verb: nobody owns twice, nobody gets a wrong answer, and
// nothing stays in doubt once it is sent again with the same token.
//
// The normal run takes a sample of the bytes, IDEM_NIGHTLY=1 every 13th (over 2,000 cuts of each
// layout, four minutes in all), IDEM_CUT_STRIDE=N every Nth: each test alone, that takes long.
#include <algorithm>
#include <array>
#include <cstdlib>
#include <tuple>

#include "idem/clock.hpp"
#include "idem/testing/cut_proxy.hpp"
#include "support.hpp"

namespace idem::mysql_test {
namespace {

using testing::Cut;
using testing::CutProxy;
using Layout = MysqlOptions::Layout;

enum class Verb { claim, complete, renew, fail, release };
constexpr const char* kVerbs[] = {"claim", "complete", "renew", "fail", "release"};
constexpr const char* kKinds[] = {"fin", "rst", "stall", "late"};

std::string name_of(Layout layout) {
  return layout == Layout::clustered ? "clustered" : "articles";
}

// Bytes from one cut to the next.
std::uint64_t stride() {
  const char* const wanted = std::getenv("IDEM_CUT_STRIDE");
  if (wanted != nullptr) return std::max<std::uint64_t>(std::strtoull(wanted, nullptr, 10), 1);
  return nightly() ? 13 : 211;
}

// What one verb came to.
enum class End { right, wrong, second_owner, unresolved };

class MysqlCuts : public ::testing::TestWithParam<std::tuple<Layout, Verb>> {
 protected:
  MysqlCuts()
      : proxy_(server().port()),
        cut_(open(through_proxy())),
        whole_(open(database_.options(layout()))) {}

  static Layout layout() { return std::get<0>(GetParam()); }
  static Verb verb() { return std::get<1>(GetParam()); }

  MysqlOptions through_proxy() const {
    MysqlOptions options = database_.options(layout());
    options.socket.clear();
    options.port = proxy_.port();
    options.connections = 1;
    options.timeout = 60ms;
    return options;
  }

  template <class T, class Result>
  static bool is(const Result& outcome) {
    return outcome.has_value() && std::holds_alternative<T>(*outcome);
  }

  // Until the answer is definite; as an application would, with the same token. What was cut may
  // have left a transaction open at the server, whose row nobody gets before the network lets go.
  template <class Call>
  auto resolved(Call call) {
    CallOptions options;
    options.timeout = 150ms;
    auto outcome = call(options);
    for (int i = 0; !outcome && i < 100; ++i) {
      ++resent_;
      if (i == 1) let_go();
      outcome = call(options);
    }
    return outcome;
  }

  // What was held back arrives, what stood still ends.
  void let_go() {
    proxy_.deliver_late();
    proxy_.release();
  }

  Lease claim_whole(const std::string& key) {
    auto outcome = whole_.claim(request(key));
    if (!is<Claimed>(outcome)) throw std::runtime_error("not claimed: " + key);
    return std::move(std::get<Claimed>(*outcome).lease);
  }

  End claim(const std::string& key) {
    const Owner owner = Owner::random();
    const auto outcome = resolved([&](CallOptions options) {
      options.owner = owner;
      return cut_.claim(request(key), options);
    });
    if (!outcome) return End::unresolved;
    if (!is<Claimed>(outcome)) return End::wrong;
    let_go();
    const auto other = whole_.claim(request(key));
    if (is<Claimed>(other)) return End::second_owner;
    const auto found = whole_.get(Key(key)).value();
    if (!found || found->record.owner != owner || found->record.attempt != 1) {
      return End::second_owner;
    }
    return is<InProgress>(other) && found->record.status == Status::processing &&
                   found->record.fence == std::get<Claimed>(*outcome).lease.fence()
               ? End::right
               : End::wrong;
  }

  End complete(const std::string& key) {
    Lease lease = claim_whole(key);
    const auto outcome =
        resolved([&](const CallOptions& options) { return cut_.complete(lease, key, options); });
    if (!outcome) return End::unresolved;
    let_go();
    const auto replay = whole_.claim(request(key));
    if (is<Claimed>(replay)) return End::second_owner;
    return is<Completed>(outcome) && is<Replay>(replay) && std::get<Replay>(*replay).result == key
               ? End::right
               : End::wrong;
  }

  End renew(const std::string& key) {
    Lease lease = claim_whole(key);
    const auto outcome = resolved([&](CallOptions options) {
      options.policy.lease = std::chrono::seconds(300);
      return cut_.renew(lease, options);
    });
    if (!outcome) return End::unresolved;
    let_go();
    const auto found = whole_.get(Key(key)).value();
    if (!found || found->record.token() != lease.token() || found->record.attempt != 1) {
      return End::second_owner;
    }
    const Micros left = found->record.lease_until - found->now;
    return is<Renewed>(outcome) && left > std::chrono::seconds(200) &&
                   is<Completed>(whole_.complete(lease, "r"))
               ? End::right
               : End::wrong;
  }

  End fail(const std::string& key) {
    Lease lease = claim_whole(key);
    const auto outcome = resolved([&](const CallOptions& options) {
      return cut_.fail(lease, FailKind::final, key, Micros(0), options);
    });
    if (!outcome) return End::unresolved;
    let_go();
    const auto again = whole_.claim(request(key));
    if (is<Claimed>(again)) return End::second_owner;
    return is<FailRecorded>(outcome) && is<Failed>(again) && std::get<Failed>(*again).reason == key
               ? End::right
               : End::wrong;
  }

  // What arrives late must leave the next owner alone.
  End release(const std::string& key) {
    Lease lease = claim_whole(key);
    const auto outcome =
        resolved([&](const CallOptions& options) { return cut_.release(lease, options); });
    if (!outcome) return End::unresolved;
    Lease next = claim_whole(key);
    let_go();
    const auto found = whole_.get(Key(key)).value();
    if (!found || found->record.token() != next.token()) return End::second_owner;
    return is<Released>(outcome) && next.fence() > lease.fence() && found->record.attempt == 1
               ? End::right
               : End::wrong;
  }

  End perform(Verb verb) {
    const std::string key = "key-" + std::to_string(100'000 + number_++);
    switch (verb) {
      case Verb::claim:
        return claim(key);
      case Verb::complete:
        return complete(key);
      case Verb::renew:
        return renew(key);
      case Verb::fail:
        return fail(key);
      case Verb::release:
        return release(key);
    }
    return End::wrong;
  }

  // On a connection that has its statements prepared: what is cut is the verb alone. False: the
  // verb was over before the cut came.
  bool cut_at(const Cut& cut) {
    EXPECT_EQ(perform(verb()), End::right) << "without a cut";
    proxy_.arm(cut);
    const End end = perform(verb());
    const bool fired = proxy_.fired();
    proxy_.disarm();
    let_go();
    if (!fired) return false;
    ++cuts_;
    ++ends_[static_cast<std::size_t>(end)];
    EXPECT_EQ(end, End::right) << "cut after byte " << cut.after << " of the "
                               << (cut.side == Cut::Side::request ? "request" : "reply") << ", "
                               << kKinds[static_cast<int>(cut.kind)];
    return true;
  }

  int ended(End end) const { return ends_[static_cast<std::size_t>(end)]; }

  Database database_;
  CutProxy proxy_;
  IdempotencyService cut_, whole_;
  int number_ = 0, cuts_ = 0, resent_ = 0;
  std::array<int, 4> ends_{};
};

TEST_P(MysqlCuts, ACutAfterAnyByteIsResolvedByTheSameToken) {
  const Time begin = system_clock().now();
  for (const auto kind : {Cut::Kind::fin, Cut::Kind::rst, Cut::Kind::stall, Cut::Kind::late}) {
    for (const auto side : {Cut::Side::request, Cut::Side::reply}) {
      if (kind == Cut::Kind::late && side == Cut::Side::reply) continue;
      for (std::uint64_t byte = 0; cut_at({side, byte, kind}); byte += stride()) {
      }
    }
  }
  std::printf(
      "%s %s: %d cut points, %d sent again by the caller, %d double owners, %d wrong, "
      "%d unresolved, %.0f s\n",
      name_of(layout()).c_str(), kVerbs[static_cast<int>(verb())], cuts_, resent_,
      ended(End::second_owner), ended(End::wrong), ended(End::unresolved),
      static_cast<double>((system_clock().now() - begin).count()) * 1e-6);
  EXPECT_EQ(ended(End::right), cuts_);
  // There are seven ways to be cut, and 200 bytes at least on each of them, taken together.
  EXPECT_GT(cuts_, 7 * 200 / static_cast<int>(stride()));
}

INSTANTIATE_TEST_SUITE_P(Each, MysqlCuts,
                         ::testing::Combine(::testing::Values(Layout::clustered, Layout::articles),
                                            ::testing::Values(Verb::claim, Verb::complete,
                                                              Verb::renew, Verb::fail,
                                                              Verb::release)),
                         [](const auto& with) {
                           return name_of(std::get<0>(with.param)) + "_" +
                                  kVerbs[static_cast<int>(std::get<1>(with.param))];
                         });

}  // namespace
}  // namespace idem::mysql_test
