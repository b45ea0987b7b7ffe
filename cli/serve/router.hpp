// Which requests need a key: the first route that matches method and path decides.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "idem/serve_options.hpp"

namespace idem::serve {

struct RouteMatch {
  http::KeyUse key = http::KeyUse::off;
  std::string_view biz_type;
};

// Immutable; share freely.
class Router {
 public:
  // Without routes: POST and PATCH by `key`, every other method off (HTTP itself makes it safe to
  // repeat them). With routes: what no route matches follows the same rule.
  Router(std::vector<Route> routes, http::KeyUse key);

  // `target`: path and query. The path is compared as it is written: "/a%2Fb" is one segment.
  [[nodiscard]] RouteMatch match(std::string_view method, std::string_view target) const;

 private:
  std::vector<Route> routes_;
  http::KeyUse key_;
};

// "*" stands for one segment, a last "/**" for any rest, also none.
[[nodiscard]] bool path_matches(std::string_view pattern, std::string_view path);

}  // namespace idem::serve
