// The driver against records that are never what was decided upon.
#include <gtest/gtest.h>

#include <limits>

#include "idem/service.hpp"
#include "idem/testing/forwarding_store.hpp"
#include "idem/testing/matchers.hpp"
#include "idem/testing/reference_store.hpp"

namespace idem {
namespace {

using namespace std::chrono_literals;
using namespace testing;  // NOLINT: the matchers

// Every replacement finds that somebody was faster, a second later.
class AlwaysOvertaken final : public ForwardingStore {
 public:
  AlwaysOvertaken(StorePtr behind, VirtualClock& clock)
      : ForwardingStore(std::move(behind)), clock_(clock) {}
  void replace(std::span<Replace> ops) override {
    for (Replace& op : ops) {
      Load load{op.key, {}};
      ForwardingStore::load({&load, 1});
      op.answer = load.answer;
      clock_.advance(1s);
    }
  }

 private:
  VirtualClock& clock_;
};

TEST(Driver, AClaimThatIsAlwaysOvertakenEndsByItsDeadline) {
  VirtualClock clock;
  ServiceOptions options;
  options.clock = &clock;
  options.timeout = 20s;
  IdempotencyService service(
      std::make_shared<AlwaysOvertaken>(std::make_shared<ReferenceStore>(clock), clock), options);
  const Request request{"k", Fingerprint::of_bytes("k")};
  CallOptions short_lease;
  short_lease.policy.lease = 1s;
  ASSERT_THAT(service.claim(request, short_lease), IsClaimed());
  clock.advance(2s);
  const Time began = clock.now();
  EXPECT_THAT(service.claim(request, short_lease), HasError(errc::busy));
  EXPECT_LE(clock.now() - began, 21s);
}

TEST(Driver, TheLargestAttemptStays) {
  VirtualClock clock;
  const auto store = std::make_shared<ReferenceStore>(clock);
  Draft draft;
  draft.owner = Owner::random();
  draft.request_hash = Fingerprint::of_bytes("k");
  draft.attempt = std::numeric_limits<std::uint32_t>::max();
  draft.fresh = true;
  draft.lease = 1s;
  draft.keep = 1h;
  const Key key("k");
  Insert insert{key, draft, {}};
  store->insert({&insert, 1});
  clock.advance(2s);
  ServiceOptions options;
  options.clock = &clock;
  IdempotencyService service(store, options);
  EXPECT_THAT(service.claim({key, draft.request_hash}), IsClaimed(AttemptIs(draft.attempt)));
}

}  // namespace
}  // namespace idem
