// The transition guard: a business state only moves along allowed transitions, and never back.
//
//   TransitionGuard guard(store, {{"WAIT_PAY", "PAID"}, {"PAID", "REFUNDED"}}, {.initial =
//   "WAIT_PAY"}); const auto moved = guard.advance("order-9", "WAIT_PAY", "PAID");  // Applied,
//   AlreadyThere, Refused
//
// The state is one record per entity, moved by compare-and-swap (so an in-transaction store makes
// it commit with the business rows), under a business type of its own: it never meets an
// idempotency key. Where the state lives in the caller's own table, docs/transitions.md shows the
// same rule as one conditional UPDATE.
#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "idem/sequence_guard.hpp"

namespace idem {

inline constexpr std::size_t kStateBytesMax = 256;

struct TransitionOptions {
  std::string initial{};  // the state of an entity that has no record yet
  std::string tenant{};
  std::string biz_type = "idem.transition";  // entities of guards with different types never meet
  Duration keep = kDurationMax;              // an entity that does not move for so long starts over
};

// The entity is in `to`, and another call moved it: a duplicate.
struct AlreadyThere {};
// The entity is elsewhere, the transition is not allowed, or a newer fence moved the entity.
// Nothing changed.
struct Refused {
  std::string current;
  std::uint64_t fence = 0;  // the newest that moved it
};
// Applied: the entity is in `to` now, and this call moved it.
using TransitionOutcome = std::variant<Applied, AlreadyThere, Refused>;

struct Transition {
  std::string_view entity;
  std::string_view from;
  std::string_view to;
  // A fencing token (Attempt::fence()). If given, it must not be lower than the newest one that
  // moved this entity: a worker that lost its lease cannot move it any more.
  std::uint64_t fence = 0;
};

struct EntityState {
  std::string state;
  std::uint64_t fence = 0;  // the newest that moved it
};

// Share freely between threads. Shares its store.
class TransitionGuard {
 public:
  using Allowed = std::set<std::pair<std::string, std::string>>;  // from, to

  // `allowed` empty, a state empty or over kStateBytesMax, or a bad `keep`: throws Exception (a
  // programming error, found at start).
  TransitionGuard(StorePtr store, Allowed allowed, TransitionOptions options);

  // Of any number of racing calls that leave one state exactly one is Applied. `entity` follows
  // the rules of a key (check_key). Two round trips, more only when calls race.
  // unknown: the entity may have been moved; a repetition answers AlreadyThere then.
  [[nodiscard]] result<TransitionOutcome> advance(std::string_view entity, std::string_view from,
                                                  std::string_view to, std::uint64_t fence = 0);

  // Outcome per item, in input order; one bad item harms no other. Items of one entity take effect
  // in input order.
  [[nodiscard]] std::vector<result<TransitionOutcome>> advance_many(
      std::span<const Transition> items);

  // Only reads.
  [[nodiscard]] result<EntityState> current(std::string_view entity);

 private:
  StorePtr store_;
  Allowed allowed_;
  TransitionOptions options_;
};

}  // namespace idem
