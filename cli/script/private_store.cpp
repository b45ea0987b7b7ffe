#include "private_store.hpp"

#include <filesystem>

#include "idem/record.hpp"
#include "idem/store_url.hpp"

namespace idem::cli {

namespace {

// FILE.script-RANDOM in front of the parameters.
std::string beside(const std::string& url, const std::string& suffix) {
  const std::size_t path_end = std::min(url.find('?'), url.size());
  return url.substr(0, path_end) + suffix + url.substr(path_end);
}

std::shared_ptr<void> remover(const std::string& file) {
  const auto remove = [file](void*) {
    for (const char* part : {"", "-wal", "-shm", "-journal"}) {
      std::error_code ignored;  // what was never made need not be removed
      std::filesystem::remove(file + part, ignored);
    }
  };
  return {nullptr, remove};
}

}  // namespace

PrivateStore open_private_store(const StoreChoice& choice, Clock& clock) {
  const StoreUrl url = must(StoreUrl::parse(choice.url), choice.from);
  const OpenOptions options{&clock};
  PrivateStore made;
  if (sqlite_path(choice.url).empty()) {
    if (url.scheme() != "memory" && url.scheme() != "sqlite") {
      must(open(choice.url, options), choice.from);  // says so best, if the scheme is unknown
      throw Failure(fail(errc::unsupported, "scenarios run on memory: and sqlite: stores only"))
          .from(choice.from);
    }
    made.store = must(open(choice.url, options), choice.from);
    return made;
  }
  const std::string private_url = beside(choice.url, ".script-" + Owner::random().hex());
  made.owner = remover(sqlite_path(private_url));
  made.store = must(open(private_url, options), choice.from);
  return made;
}

}  // namespace idem::cli
