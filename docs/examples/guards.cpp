// A business state that only moves along allowed transitions.
#include <cstdio>

#include "idem/open.hpp"
#include "idem/transition_guard.hpp"

namespace {

const char* word(const idem::result<idem::TransitionOutcome>& outcome) {
  if (!outcome) return "error";
  if (std::holds_alternative<idem::Applied>(*outcome)) return "applied";
  if (std::holds_alternative<idem::AlreadyThere>(*outcome)) return "already there";
  return "refused";
}

}  // namespace

int main() {
  const auto store = idem::open("memory:").value();
  idem::TransitionGuard orders(store, {{"WAIT_PAY", "PAID"}, {"PAID", "REFUNDED"}},
                               {.initial = "WAIT_PAY"});
  // Applied, AlreadyThere or Refused(current)
  const auto moved = orders.advance("order-9", "WAIT_PAY", "PAID");
  const auto again = orders.advance("order-9", "WAIT_PAY", "PAID");
  const auto refunded = orders.advance("order-9", "PAID", "REFUNDED");
  const auto late = orders.advance("order-9", "WAIT_PAY", "PAID");
  std::printf("%s, %s, %s, %s\n", word(moved), word(again), word(refunded), word(late));
  return moved && again && refunded && late && std::holds_alternative<idem::AlreadyThere>(*again) &&
                 std::holds_alternative<idem::Refused>(*late)
             ? 0
             : 1;
}
