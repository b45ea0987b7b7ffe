#include "scene.hpp"

#include <stdexcept>

#include "idem/testing/describe.hpp"

namespace idem::conformance {
namespace {

using namespace std::chrono_literals;

void must(bool ok, const std::string& what) {
  if (!ok) throw std::runtime_error(what);
}

}  // namespace

std::optional<Record> raw(IdempotencyStore& store, std::string_view key) {
  const Key whole{std::string(key)};
  Load op{whole, {}};
  do store.load({&op, 1});
  while (op.answer.state == Answer::State::failed && op.answer.error.code == errc::unknown);
  switch (op.answer.state) {
    case Answer::State::stands:
      return std::move(op.answer.held);
    case Answer::State::absent:
      return std::nullopt;
    default:
      throw std::runtime_error("load: " + testing::describe(op.answer));
  }
}

std::string state_of(const std::optional<Record>& held, Time now) {
  if (!held) return "N";
  if (held->expired(now)) return "X";
  switch (held->status) {
    case Status::processing:
      return now < held->lease_until ? "PL" : "PX";
    case Status::success:
      return "S";
    case Status::failed:
      break;
  }
  switch (held->fail_kind) {
    case FailKind::final:
      return "FF";
    case FailKind::abandoned:
      return "AB";
    default:
      return now < held->retry_at ? "FB" : "FR";
  }
}

Time Scenery::now() {
  Load op{{"", "", "now"}, {}};
  do store_.load({&op, 1});
  while (op.answer.state == Answer::State::failed);
  return op.answer.now;
}

void Scenery::claim(std::vector<Scene>& scenes, Role role, OnLapsed on_lapsed) {
  std::vector<Request> requests;
  for (const Scene& scene : scenes) requests.push_back(scene.request());
  CallOptions options;
  options.policy.on_lapsed = on_lapsed;
  auto outcomes = service_.claim_many(requests, options);
  for (std::size_t i = 0; i < scenes.size(); ++i) {
    must(outcomes[i].has_value() && std::holds_alternative<Claimed>(*outcomes[i]),
         "claim: " + testing::describe(outcomes[i]));
    (scenes[i].*role).emplace(std::move(std::get<Claimed>(*outcomes[i]).lease));
  }
}

// Past the service: the leases' handles are none the wiser.
void Scenery::remove(std::vector<Scene>& scenes) {
  for (bool away = false; !away;) {
    std::vector<Key> keys;
    std::vector<Remove> ops;
    for (const Scene& scene : scenes) {
      if (const auto held = raw(store_, scene.key)) {
        keys.emplace_back(scene.key);
        ops.push_back({{}, held->version, {}});
      }
    }
    for (std::size_t i = 0; i < ops.size(); ++i) ops[i].key = keys[i];
    away = ops.empty();
    if (!away) store_.remove(ops);
  }
}

void Scenery::complete(std::vector<Scene>& scenes) {
  std::vector<IdempotencyService::CompleteItem> items;
  for (Scene& scene : scenes) items.push_back({&*scene.mine, kFirst});
  for (const auto& outcome : service_.complete_many(items)) {
    must(outcome.has_value(), "complete: " + testing::describe(outcome));
  }
}

void Scenery::fail(std::vector<Scene>& scenes, FailKind kind, Duration retry_after) {
  for (Scene& scene : scenes) {
    must(service_.fail(*scene.mine, kind, kFirst, retry_after).has_value(), "fail");
  }
}

void Scenery::sweep() {
  for (;;) {
    const auto swept = service_.sweep();
    must(swept.has_value(), "sweep: " + testing::describe(swept));
    if (swept->abandoned + swept->expired == 0) return;
  }
}

void Scenery::bring_about(std::vector<Scene>& scenes, const std::string& state) {
  if (state == "A") {
    remove(scenes);
  } else if (state == "PL") {
    advance_(10s);
  } else if (state == "PX" || state == "D") {
    advance_(40s);
  } else if (state == "PS" || state == "DS") {
    advance_(600s);
  } else if (state == "S" || state == "XS" || state == "SW") {
    complete(scenes);
  } else if (state == "FR") {
    fail(scenes, FailKind::retryable, 0s);
  } else if (state == "FB") {
    fail(scenes, FailKind::retryable, 100s);
  } else if (state == "FF" || state == "XF") {
    fail(scenes, FailKind::final, 0s);
  } else if (state == "AB") {
    advance_(600s);
    sweep();
  }
  if (state[0] == 'X' || state == "SW") advance_(25h);
  if (state == "SW") sweep();
}

std::vector<Scene> Scenery::make(std::string_view state, std::size_t count) {
  std::vector<Scene> scenes(count);
  for (Scene& scene : scenes) {
    scene.state = state;
    scene.key = "cell-" + std::to_string(next_++);
  }
  const bool hold = state == "D" || state == "DS";
  claim(scenes, &Scene::old, OnLapsed::takeover);
  remove(scenes);
  claim(scenes, &Scene::previous, hold ? OnLapsed::hold : OnLapsed::takeover);
  advance_(30s);
  claim(scenes, &Scene::mine, OnLapsed::takeover);
  for (Scene& scene : scenes) {
    if (!hold) break;
    CallOptions options;
    options.policy.on_lapsed = OnLapsed::hold;
    must(service_.renew(*scene.mine, options).has_value(), "renew");
  }
  bring_about(scenes, std::string(state));
  const std::string should = state == "A" || state == "SW"      ? "N"
                             : state == "PS" || state[0] == 'D' ? "PX"
                             : state[0] == 'X'                  ? "X"
                                                                : std::string(state);
  const Time at = now();
  for (Scene& scene : scenes) {
    scene.before = raw(store_, scene.key);
    const std::string is = state_of(scene.before, at);
    const bool freed = should == "X" && is == "N" && store_.capabilities().frees_by_itself;
    must(is == should || freed, "the scene " + scene.state + " came out as " + is);
  }
  return scenes;
}

}  // namespace idem::conformance
