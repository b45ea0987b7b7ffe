#include "run_store.hpp"

#include <fmt/core.h>

#include <cstdlib>
#include <filesystem>
#include <optional>
#include <string_view>

#include "failure.hpp"

namespace idem::cli {

namespace {

namespace fs = std::filesystem;

std::optional<fs::path> default_file() {
  const auto set = [](const char* name) -> std::string_view {
    const char* value = std::getenv(name);
    return value == nullptr ? "" : value;
  };
  if (const auto state = set("XDG_STATE_HOME"); state.starts_with('/'))
    return fs::path(state) / "idem" / "run.db";
  if (const auto home = set("HOME"); home.starts_with('/'))
    return fs::path(home) / ".local" / "state" / "idem" / "run.db";
  return std::nullopt;
}

std::string url_of(const fs::path& file) {
  std::string url = "sqlite:///";
  for (const char c : file.string()) {
    constexpr std::string_view kPlain = "-._~/";
    const bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                       kPlain.find(c) != std::string_view::npos;
    url += plain ? std::string(1, c) : fmt::format("%{:02X}", static_cast<unsigned char>(c));
  }
  return url;
}

StorePtr open_default(std::string& from, std::string& news) {
  const std::optional<fs::path> place = default_file();
  if (!place)
    throw Failure::usage("no place for the records: neither XDG_STATE_HOME nor HOME is set")
        .advise("--store sqlite:////absolute/path.db");
  const fs::path& file = *place;
  from = "the default store " + file.string();
  std::error_code error;
  fs::create_directories(file.parent_path(), error);
  if (error)
    throw Failure(fail(errc::cannot_open,
                       "cannot make " + file.parent_path().string() + ": " + error.message()))
        .from(from);
  const bool fresh = !fs::exists(file, error);
  if (error)
    throw Failure(fail(errc::denied,
                       "cannot look into " + file.parent_path().string() + ": " + error.message()))
        .from(from)
        .advise("--store sqlite:////absolute/path.db");
  if (fresh) fs::permissions(file.parent_path(), fs::perms::owner_all, error);
  StorePtr store = must(open(url_of(file)), from);
  if (fresh)
    news = fmt::format("idem: results are kept in {} (--store says otherwise)\n", file.string());
  return store;
}

}  // namespace

std::string existing_run_store() {
  const std::optional<fs::path> file = default_file();
  std::error_code error;
  return file && fs::exists(*file, error) ? url_of(*file) : std::string();
}

StorePtr open_run_store(const Context& context, std::string& from, std::string& news) {
  const StoreChoice choice = named_store(context);
  if (choice.url.empty()) return open_default(from, news);
  from = choice.from;
  return open_lasting_store(choice, {}, &news);
}

}  // namespace idem::cli
