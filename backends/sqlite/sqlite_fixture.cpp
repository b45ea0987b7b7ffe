#include "sqlite_fixture.hpp"

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <memory>
#include <string>

#include "idem/sqlite_store.hpp"

namespace idem::sqlite {
namespace {

namespace fs = std::filesystem;

struct Directory {
  fs::path path;
  ~Directory() {
    std::error_code ignored;
    fs::remove_all(path, ignored);
  }
};

result<std::shared_ptr<Directory>> make_directory() {
  std::error_code error;
  const fs::path parent = fs::temp_directory_path(error);
  std::string pattern = (parent / "idem-sqlite-XXXXXX").string();
  if (error || mkdtemp(pattern.data()) == nullptr)
    return fail(errc::cannot_open, "cannot make a directory " + pattern + ": " +
                                       (error ? error.message() : std::strerror(errno)));
  auto directory = std::make_shared<Directory>();
  directory->path = pattern;
  return directory;
}

}  // namespace

result<Fixture> make_fixture(std::string_view variant, const OpenOptions& options) {
  SqliteOptions sqlite;
  sqlite.clock = options.clock;
  Fixture fixture;
  if (variant == "memory") {
    sqlite.path = ":memory:";
    fixture.url = "sqlite::memory:";
  } else if (variant.empty() || variant == "file") {
    auto directory = make_directory();
    if (!directory) return directory.error();
    sqlite.path = ((*directory)->path / "idem.db").string();
    fixture.url = "sqlite:///" + sqlite.path;
    fixture.owner = std::move(*directory);
  } else {
    return fail(errc::invalid_argument,
                "no SQLite fixture '" + std::string(variant) + "': file or memory");
  }
  auto store = open_sqlite(sqlite);
  if (!store) return store.error();
  fixture.store = std::move(*store);
  return fixture;
}

}  // namespace idem::sqlite
