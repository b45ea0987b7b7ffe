// --config and --set, for every command that reads a configuration.
#pragma once

#include <string>
#include <vector>

#include "context.hpp"
#include "idem/config.hpp"

namespace CLI {
class App;
}

namespace idem::cli {

struct ConfigOptions {
  std::string file;               // --config; empty: IDEM_CONFIG, else none
  std::vector<std::string> sets;  // --set NAME=VALUE
};

void add_config(CLI::App* app, ConfigOptions& into);

// Everything the sources say; `flags` are what the command's own options stand for, and go before
// --set. A fault is a Failure with exit status 2 and one line per fault.
[[nodiscard]] Config read_config(const ConfigOptions& options, const Context& context,
                                 std::vector<ConfigFlag> flags = {});

// The configured store, and where its URL comes from. A Failure if there is none.
[[nodiscard]] StoreChoice configured_store(const Config& config);

}  // namespace idem::cli
