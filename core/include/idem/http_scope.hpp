// What the adapters share: a blocking handler, run under a guard.
#pragma once

#include <exception>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "idem/http.hpp"

namespace idem::http {

// Whose key it is. The tenant is the authenticated principal, as the application knows it.
struct Scope {
  std::string tenant{};
  std::string biz_type{};
  std::optional<KeyUse> key{};  // default: Policy::key
};

// A handler's response, borrowed from it.
struct Handled {
  unsigned status = 200;
  std::vector<HeaderView> headers;
  std::string_view body;
};

// Runs `handler` (without arguments, returns Handled) if the guard says so. `request` lacks tenant,
// biz_type and key: they are taken from `scope`.
template <class Handler>
[[nodiscard]] Finished run_guarded(Guard& guard, RequestView request, const Scope& scope,
                                   Handler&& handler) {
  request.tenant = scope.tenant;
  request.biz_type = scope.biz_type;
  request.key = scope.key;
  Decision decision = guard.begin(request);
  if (auto* answer = std::get_if<Answer>(&decision)) return {std::move(answer->response), {}};
  auto* run = std::get_if<Proceed>(&decision);
  if (run == nullptr) {
    (void)handler();
    return {};
  }
  std::optional<Handled> handled;
  try {
    handled = handler();
  } catch (const std::exception& error) {
    guard.fail(std::move(run->exchange), std::string("exception: ") + error.what());
    throw;
  } catch (...) {
    guard.fail(std::move(run->exchange), "exception: not derived from std::exception");
    throw;
  }
  return guard.finish(std::move(run->exchange), {handled->status, handled->headers, handled->body});
}

}  // namespace idem::http
