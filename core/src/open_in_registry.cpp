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
  message += ". Known:";
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

bool same_store_in_registry(std::string_view one, std::string_view other,
                            std::span<const Backend> registry) {
  if (one == other) return true;
  const auto identity = [&](std::string_view url) -> std::string {
    const auto parsed = StoreUrl::parse(url);
    if (!parsed) return {};
    const auto backend = backend_in_registry(*parsed, registry);
    if (!backend || !(*backend)->identity) return {};
    const std::string place = (*backend)->identity(*parsed);
    return place.empty() ? place : (*backend)->name + " " + place;
  };
  const std::string place = identity(one);
  return !place.empty() && place == identity(other);
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
