// Scenes of the decision table: a key brought into a state, with everybody who ever held it.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

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

// Brings scenes about through a service, many at once: what a durable store writes per scene is
// what the decision table costs. Throws where a scene does not come out as it should.
class Scenery {
 public:
  Scenery(IdempotencyService& service, IdempotencyStore& store,
          std::function<void(Duration)> advance)
      : service_(service), store_(store), advance_(std::move(advance)) {}

  // `count` keys that nobody has used, all in `state` (decision_table.hpp).
  [[nodiscard]] std::vector<Scene> make(std::string_view state, std::size_t count);
  // The store's time.
  [[nodiscard]] Time now();

 private:
  using Role = std::optional<Lease> Scene::*;

  void claim(std::vector<Scene>& scenes, Role role, OnLapsed on_lapsed);
  void remove(std::vector<Scene>& scenes);
  void complete(std::vector<Scene>& scenes);
  void fail(std::vector<Scene>& scenes, FailKind kind, Duration retry_after);
  void sweep();
  void bring_about(std::vector<Scene>& scenes, const std::string& state);

  IdempotencyService& service_;
  IdempotencyStore& store_;
  std::function<void(Duration)> advance_;
  int next_ = 0;
};

}  // namespace idem::conformance
