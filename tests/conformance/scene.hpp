// Scenes of the decision table: a key brought into a state, with everybody who ever held it.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "idem/service.hpp"
#include "idem/store.hpp"

namespace idem::conformance {

// The request and result of every scene.
inline constexpr std::string_view kBody = "body";
inline constexpr std::string_view kFirst = "first";

struct Scene {
  std::string key;
  std::string state;
  std::optional<Lease> old;       // of an incarnation before this one, removed by force
  std::optional<Lease> previous;  // of this incarnation, taken over from
  std::optional<Lease> mine;      // of the attempt the state is about
  std::optional<Record> before;   // as the store holds it; nullopt: nothing

  [[nodiscard]] Request request(std::string_view body = kBody) const {
    return {Key(key), Fingerprint::of_bytes(body)};
  }
};

// What the store holds under `key`, expired or not.
[[nodiscard]] std::optional<Record> raw(IdempotencyStore& store, std::string_view key);

// The name of the state `held` is in, as in decision_table.hpp ("X" for any expired one).
[[nodiscard]] std::string state_of(const std::optional<Record>& held, Time now);

}  // namespace idem::conformance
