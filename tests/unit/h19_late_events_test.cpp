// H19: late events do not turn the state back.
#include <gmock/gmock.h>

#include "idem/sequence_guard.hpp"
#include "idem/service.hpp"
#include "idem/testing/matchers.hpp"
#include "idem/testing/reference_store.hpp"
#include "idem/transition_guard.hpp"

namespace idem {
namespace {

using namespace std::string_literals;

// An order whose events come in any order, each perhaps twice.
class Orders {
 public:
  explicit Orders(StorePtr store)
      : service_(store),
        sequence_(store),
        states_(store, {{"WAIT_PAY", "PAID"}, {"PAID", "REFUNDED"}}, {.initial = "WAIT_PAY"}) {}

  // The event is recorded whatever it does; the answer says what it did.
  result<ExecuteOutcome> deliver(std::uint64_t seq, std::string_view from, std::string_view to) {
    const std::string key =
        KeyBuilder("ORDER").add("order-9").add(static_cast<std::int64_t>(seq)).key();
    return service_.execute({key, Fingerprint::of_bytes(to)}, [&](Attempt& attempt) -> Verdict {
      const auto accepted = sequence_.accept("order-9", seq);
      if (!accepted) return Retryable{accepted.error().message};
      if (std::holds_alternative<Stale>(*accepted)) return "out of order"s;
      const auto moved = states_.advance("order-9", from, to, attempt.fence());
      if (!moved) return Retryable{moved.error().message};
      if (!std::holds_alternative<Applied>(*moved)) return "refused"s;
      ++rows_changed;
      return std::string(to);
    });
  }
  std::string state() { return states_.current("order-9")->state; }

  int rows_changed = 0;

 private:
  IdempotencyService service_;
  SequenceGuard sequence_;
  TransitionGuard states_;
};

TEST(H19, LateEventsDoNotTurnTheStateBack) {
  VirtualClock clock;
  auto store = std::make_shared<testing::ReferenceStore>(clock);
  Orders orders(store);
  ASSERT_EQ(orders.state(), "WAIT_PAY");

  EXPECT_THAT(orders.deliver(2, "WAIT_PAY", "PAID"), testing::ExecutedWith("PAID"));
  EXPECT_EQ(orders.state(), "PAID");
  EXPECT_EQ(orders.rows_changed, 1);

  // Rejected, nothing changed, still recorded.
  EXPECT_THAT(orders.deliver(1, "NEW", "WAIT_PAY"), testing::ExecutedWith("out of order"));
  EXPECT_EQ(orders.rows_changed, 1);
  EXPECT_THAT(orders.deliver(1, "NEW", "WAIT_PAY"), testing::ReplayOf("out of order"));

  EXPECT_THAT(orders.deliver(3, "PAID", "REFUNDED"), testing::ExecutedWith("REFUNDED"));
  EXPECT_EQ(orders.rows_changed, 2);

  EXPECT_THAT(orders.deliver(2, "WAIT_PAY", "PAID"), testing::ReplayOf("PAID"));
  EXPECT_EQ(orders.rows_changed, 2);
  EXPECT_EQ(orders.state(), "REFUNDED");
}

}  // namespace
}  // namespace idem
