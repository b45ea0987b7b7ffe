#include "router.hpp"

namespace idem::serve {
namespace {

// Takes "/segment" off the front; the segment.
std::string_view take_segment(std::string_view& path) {
  path.remove_prefix(1);
  const std::string_view segment = path.substr(0, path.find('/'));
  path.remove_prefix(segment.size());
  return segment;
}

}  // namespace

bool path_matches(std::string_view pattern, std::string_view path) {
  while (!pattern.empty()) {
    if (pattern == "/**") return path.empty() || path.front() == '/';
    if (path.empty() || path.front() != '/') return false;
    const std::string_view wanted = take_segment(pattern);
    const std::string_view segment = take_segment(path);
    const bool any = wanted == "*" && !segment.empty();
    if (!any && wanted != segment) return false;
  }
  return path.empty();
}

Router::Router(std::vector<Route> routes, http::KeyUse key)
    : routes_(std::move(routes)), key_(key) {}

RouteMatch Router::match(std::string_view method, std::string_view target) const {
  const std::string_view path = target.substr(0, target.find('?'));
  for (const Route& route : routes_) {
    if ((route.method == "*" || route.method == method) && path_matches(route.path, path)) {
      return {route.key, route.biz_type};
    }
  }
  return {method == "POST" || method == "PATCH" ? key_ : http::KeyUse::off, {}};
}

}  // namespace idem::serve
