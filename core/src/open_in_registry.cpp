#include <set>
#include <string>

#include "idem/backend.hpp"

namespace idem {

result<const Backend*> backend_in_registry(const StoreUrl& url, std::span<const Backend> registry) {
  std::set<std::string, std::less<>> known;
  for (const Backend& backend : registry) {
    for (const std::string& scheme : backend.schemes) {
      if (scheme == url.scheme()) return &backend;
      known.insert(scheme);
    }
  }
  std::string message = "unknown store scheme '" + url.scheme() + ":'";
  if (const auto meant = nearest(url.scheme(), known)) {
    message += ", did you mean '" + *meant + ":'?";
  }
  message += " Known:";
  for (const std::string& scheme : known) message += " " + scheme + ":";
  return fail(errc::invalid_argument, std::move(message));
}

result<StorePtr> open_in_registry(std::string_view url, const OpenOptions& options) {
  const auto parsed = StoreUrl::parse(url);
  if (!parsed) return parsed.error();
  const auto backend = backend_in_registry(*parsed, options.registry);
  if (!backend) return backend.error();
  return (*backend)->open(*parsed, options);
}

result<Fixture> beside_in_registry(std::string_view url, const OpenOptions& options) {
  const auto parsed = StoreUrl::parse(url);
  if (!parsed) return parsed.error();
  const auto backend = backend_in_registry(*parsed, options.registry);
  if (!backend) return backend.error();
  if ((*backend)->beside) return (*backend)->beside(*parsed, options);
  return fail(errc::unsupported, "there are no private stores on " + (*backend)->name);
}

Findings diagnose_in_registry(std::string_view url, const DiagnoseOptions& options) {
  const auto bad = [](const Error& error) {
    return Findings{{Finding::Severity::bad, "url", error.message, "idem stores lists the forms"}};
  };
  const auto parsed = StoreUrl::parse(url);
  if (!parsed) return bad(parsed.error());
  const auto backend = backend_in_registry(*parsed, options.open.registry);
  if (!backend) return bad(backend.error());
  if ((*backend)->diagnose) return (*backend)->diagnose(*parsed, options);
  return {{Finding::Severity::ok, "settings", "nothing to set on " + (*backend)->name, ""}};
}

}  // namespace idem
