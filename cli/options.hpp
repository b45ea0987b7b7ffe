// Option helpers, so that every command takes durations, counts and keys in the same words.
#pragma once

#include <CLI/CLI.hpp>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "context.hpp"
#include "idem/store_url.hpp"

namespace idem::cli {

// What --store is by default, as help tells it.
inline constexpr const char* kNamedStore = "$IDEM_STORE";
inline constexpr const char* kNamedStoreOrRuns = "$IDEM_STORE, else the file of idem run";
inline constexpr const char* kNoStore = "";  // the command has no --store

// A command that does something: --json, --store, and its help with `examples`.
CLI::App* add_leaf(CLI::App& parent, Context& context, const std::string& name,
                   const std::string& summary, const std::vector<std::string>& examples,
                   const std::string& store_default = kNamedStore);

// What the command does; `options` is what its options were bound to.
template <class Options>
void on_run(CLI::App* leaf, Context& context, std::shared_ptr<Options> options,
            ExitCode (*work)(const Options&, Context&)) {
  leaf->callback([&context, options, work] {
    context.action = [&context, options, work] { return work(*options, context); };
  });
}

// `shown`: the default as help prints it.
CLI::Option* add_duration(CLI::App* app, const std::string& name, std::optional<Duration>& into,
                          const std::string& help, const std::string& shown);
CLI::Option* add_count(CLI::App* app, const std::string& name, std::optional<std::uint64_t>& into,
                       const std::string& help, const std::string& shown);
// A number that 0 makes no sense of.
CLI::Option* add_positive(CLI::App* app, const std::string& name,
                          std::optional<std::uint64_t>& into, const std::string& help,
                          const std::string& shown);
// Refuses "": an unset variable of a script must not count as an option that was not given.
[[nodiscard]] CLI::Validator not_empty();
CLI::Option* add_text(CLI::App* app, const std::string& name, std::string& into,
                      const std::string& help, const std::string& shown = "none");

struct KeyOptions {
  std::string key;
  std::string biz;
  std::string tenant;
  [[nodiscard]] Key value() const { return {tenant, biz, key}; }
};
// KEY as a positional; --biz and --tenant.
void add_key(CLI::App* app, KeyOptions& into);
// --biz and --tenant alone.
void add_scope(CLI::App* app, KeyOptions& into);

}  // namespace idem::cli
