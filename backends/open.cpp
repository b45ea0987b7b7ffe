#include "idem/open.hpp"

#include <string>

namespace idem {
namespace {

OpenOptions with_registry(OpenOptions options) {
  options.registry = backends();
  return options;
}

}  // namespace

result<StorePtr> open(std::string_view url, const OpenOptions& options) {
  return open_in_registry(url, with_registry(options));
}

bool same_store(std::string_view one, std::string_view other) {
  return same_store_in_registry(one, other, backends());
}

result<Fixture> make_fixture(std::string_view name, std::string_view variant,
                             const OpenOptions& options) {
  for (const Backend& backend : backends()) {
    if (backend.name == name) return backend.fixture(variant, with_registry(options));
  }
  return fail(errc::invalid_argument, "this build has no backend '" + std::string(name) + "'");
}

result<Fixture> open_beside(std::string_view url, const OpenOptions& options) {
  return beside_in_registry(url, with_registry(options));
}

Findings diagnose(std::string_view url, const DiagnoseOptions& options) {
  DiagnoseOptions registered = options;
  registered.open = with_registry(options.open);
  return diagnose_in_registry(url, registered);
}

}  // namespace idem
