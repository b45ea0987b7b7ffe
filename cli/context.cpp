#include "context.hpp"

#include <fmt/core.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <memory>

#include "failure.hpp"
#include "idem/redacted.hpp"
#include "run/run_store.hpp"

namespace idem::cli {

StoreChoice named_store(const Context& context) {
  if (!context.store_url.empty())
    return {context.store_url, "--store " + redacted_url(context.store_url)};
  const char* from_environment = std::getenv("IDEM_STORE");
  if (from_environment == nullptr || *from_environment == '\0') return {};
  return {from_environment, "IDEM_STORE=" + redacted_url(from_environment)};
}

StoreChoice chosen_store(const Context& context) {
  StoreChoice choice = named_store(context);
  if (choice.url.empty())
    throw Failure::usage("no store named: give --store URL or set IDEM_STORE")
        .advise("idem stores   (lists the URL forms)")
        .advise("--store sqlite:idem.db");
  return choice;
}

StoreChoice chosen_store_or_runs(const Context& context) {
  if (named_store(context).url.empty()) {
    if (const std::string url = existing_run_store(); !url.empty())
      return {url, "the default store " + sqlite_path(url)};
  }
  return chosen_store(context);
}

StorePtr open_store(const StoreChoice& choice, const OpenOptions& options, std::string* news) {
  auto store = open(choice.url, options);
  if (!store) {
    Failure failure = Failure(store.error()).from(choice.from);
    if (store.error().code == errc::invalid_argument)
      throw std::move(failure).advise("idem stores   (lists the URL forms)");
    if (store.error().code == errc::cannot_open)
      throw std::move(failure).advise(
          "idem store doctor   (with the same store: what is wrong there, and what to set)");
    throw std::move(failure);
  }
  // To a person: where a relative path leads. A cron job that says something is mail every night.
  if (const std::string path = sqlite_path(choice.url);
      !path.empty() && ::isatty(STDERR_FILENO) == 1) {
    const std::string text = fmt::format("idem: store {}\n", path);
    if (news == nullptr) tell_user(text);
    if (news != nullptr) *news = text;
  }
  return *store;
}

StorePtr open_lasting_store(const StoreChoice& choice, const OpenOptions& options,
                            std::string* news) {
  StorePtr store = open_store(choice, options, news);
  if (!store->capabilities().multi_process)
    throw Failure::usage("this store ends with this process: nobody would find what it holds")
        .from(choice.from)
        .advise("--store sqlite:idem.db");
  return store;
}

StorePtr open_existing_store(const StoreChoice& choice) {
  OpenOptions options;
  options.create = false;
  return open_lasting_store(choice, options);
}

std::string sqlite_path(std::string_view url) {
  const auto parsed = StoreUrl::parse(url);
  if (!parsed || parsed->scheme() != "sqlite" || parsed->path() == ":memory:") return {};
  std::string path = parsed->path();
  if (parsed->has_authority() && path.starts_with('/')) path.erase(0, 1);
  return std::filesystem::absolute(path).lexically_normal().string();
}

// A file without an end (/dev/zero) must not take the memory of the machine.
constexpr std::size_t kFileBytesMax = std::size_t{256} << 20;

std::string read_file(const std::string& path) {
  const auto close = [](std::FILE* file) {
    if (file != stdin) std::fclose(file);
  };
  const std::unique_ptr<std::FILE, decltype(close)> file(
      path == "-" ? stdin : std::fopen(path.c_str(), "rb"), close);
  if (!file) throw Failure::usage("cannot read file '" + path + "'");
  std::string text;
  char buffer[1 << 16];
  while (const std::size_t got = std::fread(buffer, 1, sizeof buffer, file.get())) {
    if (text.size() + got > kFileBytesMax)
      throw Failure::usage("'" + path + "' has more than 256 MiB, or no end");
    text.append(buffer, got);
  }
  if (std::ferror(file.get()) != 0) throw Failure::usage("cannot read file '" + path + "'");
  return text;
}

void print_answer(const Context& context, const Json& answer, std::string_view subject) {
  if (context.json) {
    print_document(answer);
  } else {
    print_text(to_text(answer, subject));
  }
}

void print_text(std::string_view text) {
  std::fwrite(text.data(), 1, text.size(), stdout);
  std::fflush(stdout);
}

}  // namespace idem::cli
