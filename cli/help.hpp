// How help looks: what the command is for, examples, options with their defaults.
#pragma once

#include <CLI/CLI.hpp>
#include <string>

#include "context.hpp"

namespace idem::cli {

// Examples before options; every option with its default.
class HelpFormatter : public CLI::Formatter {
 public:
  [[nodiscard]] std::string make_help(const CLI::App* app, std::string name,
                                      CLI::AppFormatMode mode) const override;
  [[nodiscard]] std::string make_option_opts(const CLI::Option* option) const override;
  [[nodiscard]] std::string make_option_desc(const CLI::Option* option) const override;
};

// -h, --json and, unless `store_default` is empty, --store.
void add_global_options(CLI::App& app, Context& context, const std::string& store_default);

// The command line's own complaint: the unknown word with the nearest known one.
[[nodiscard]] Failure usage_failure(const CLI::App& root, const CLI::ParseError& error);

// "idem key claim"
[[nodiscard]] std::string full_name(const CLI::App& app);

}  // namespace idem::cli
