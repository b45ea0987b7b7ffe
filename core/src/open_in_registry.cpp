#include <set>
#include <string>

#include "idem/backend.hpp"

namespace idem {

result<StorePtr> open_in_registry(std::string_view url, const OpenOptions& options) {
  auto parsed = StoreUrl::parse(url);
  if (!parsed) return parsed.error();
  std::set<std::string, std::less<>> known;
  for (const Backend& backend : options.registry) {
    for (const std::string& scheme : backend.schemes) {
      if (scheme == parsed->scheme()) return backend.open(*parsed, options);
      known.insert(scheme);
    }
  }
  std::string message = "unknown store scheme '" + parsed->scheme() + ":'";
  if (const auto meant = nearest(parsed->scheme(), known)) {
    message += ", did you mean '" + *meant + ":'?";
  }
  message += " Known:";
  for (const std::string& scheme : known) message += " " + scheme + ":";
  return fail(errc::invalid_argument, std::move(message));
}

}  // namespace idem
