// sqlite: URLs, and the private stores of tests and measurements.
#include <sqlite3.h>

#include <cstdlib>
#include <filesystem>
#include <string>
#include <utility>

#include "idem/sqlite_store.hpp"
#include "schema.hpp"
#include "sqlite_doctor.hpp"
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

result<SqliteOptions> options_of(const StoreUrl& given, const OpenOptions& open_options) {
  StoreUrl url = given;
  SqliteOptions options;
  options.clock = open_options.clock;
  options.create = open_options.create;
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
  return options;
}

result<StorePtr> open_url(const StoreUrl& url, const OpenOptions& open_options) {
  const auto options = options_of(url, open_options);
  if (!options) return options.error();
  return open_sqlite(*options);
}

std::string identity_of(const StoreUrl& url) {
  const auto path = path_of(url);
  if (!path || *path == ":memory:") return {};
  std::error_code error;
  const auto full = std::filesystem::absolute(*path, error);
  const auto plain = error ? full : std::filesystem::weakly_canonical(full, error);
  return error ? std::string() : plain.string();
}

// Removes a database with all that SQLite keeps beside it.
std::shared_ptr<void> remover(const std::string& file) {
  const auto remove = [file](void*) {
    for (const char* part : {"", "-wal", "-shm", "-journal"}) {
      std::error_code ignored;  // what was never made need not be removed
      std::filesystem::remove(file + part, ignored);
    }
  };
  return {nullptr, remove};
}

// FILE.beside-RANDOM.
result<Fixture> open_beside(const StoreUrl& url, const OpenOptions& open_options) {
  auto options = options_of(url, open_options);
  if (!options) return options.error();
  Fixture made;
  if (options->path != ":memory:") {
    options->path += ".beside-" + Owner::random().hex();
    options->create = true;
    made.owner = remover(std::filesystem::absolute(options->path).string());
  }
  auto store = open_sqlite(*options);
  if (!store) return store.error();
  made.store = std::move(*store);
  return made;
}

Findings diagnose_url(const StoreUrl& url, const DiagnoseOptions& diagnose_options) {
  const auto options = options_of(url, diagnose_options.open);
  if (options) return sqlite::diagnose(*options, diagnose_options.min_durability);
  return {{Finding::Severity::bad, "url", options.error().message, "idem stores lists the forms"}};
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
  backend.schema = [](const StoreUrl&) { return std::string(sqlite::kSchemaSql); };
  backend.beside = open_beside;
  backend.diagnose = diagnose_url;
  backend.identity = identity_of;
  return backend;
}

}  // namespace idem
