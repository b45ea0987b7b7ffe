// sqlite: URLs, and the private stores of tests and measurements.
#include <sqlite3.h>

#include <cstdlib>
#include <filesystem>
#include <string>
#include <utility>

#include "idem/sqlite_store.hpp"
#include "schema.hpp"
#include "sqlite_fixture.hpp"

namespace idem {
namespace {

// "sqlite:///a.db" is relative, "sqlite:////a.db" absolute: the slash that ends the (empty) host is
// not part of the path.
result<std::string> path_of(const StoreUrl& url) {
  if (!url.host().empty() || !url.user().empty() || url.port())
    return fail(
        errc::invalid_argument,
        "an SQLite URL has no host: write sqlite:name.db, sqlite:///name.db (both relative) "
        "or sqlite:////path/name.db (absolute)");
  std::string path = url.path();
  if (url.has_authority() && path.starts_with('/')) path.erase(0, 1);
  if (path.empty())
    return fail(errc::invalid_argument,
                "an SQLite URL needs the path of a file: sqlite:name.db, or sqlite::memory:");
  return path;
}

result<StorePtr> open_url(const StoreUrl& given, const OpenOptions& open_options) {
  StoreUrl url = given;
  SqliteOptions options;
  options.clock = open_options.clock;
  auto path = path_of(url);
  if (!path) return path.error();
  options.path = std::move(*path);
  if (const auto synchronous = url.text("synchronous")) {
    if (*synchronous == "normal")
      options.synchronous = SqliteOptions::Synchronous::normal;
    else if (*synchronous != "full")
      return fail(errc::invalid_argument,
                  "synchronous=" + *synchronous + ": write full (survives a power cut) or normal");
  }
  const auto busy_timeout = url.duration("busy_timeout");
  if (!busy_timeout) return busy_timeout.error();
  if (*busy_timeout) options.busy_timeout = **busy_timeout;
  if (auto known = url.check_all_known(); !known) return known.error();
  return open_sqlite(options);
}

}  // namespace

Backend sqlite_backend() {
  Backend backend;
  backend.name = "sqlite";
  backend.schemes = {"sqlite"};
  backend.url_forms = {"sqlite:relative.db", "sqlite:///relative.db", "sqlite:////absolute.db",
                       "sqlite::memory:", "sqlite:name.db?synchronous=full|normal&busy_timeout=5s"};
  backend.summary = "one file, shared by the processes of one machine, survives a power cut";
  backend.client = std::string("SQLite ") + sqlite3_libversion();
  backend.open = open_url;
  backend.variants = {"file", "memory"};
  backend.fixture = sqlite::make_fixture;
  backend.schema = sqlite::kSchemaSql;
  return backend;
}

}  // namespace idem
