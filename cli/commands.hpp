// The command families; each adds its commands to the option tree.
#pragma once

#include <CLI/CLI.hpp>

#include "context.hpp"

namespace idem::cli {

void add_run(CLI::App& root, Context& context);
void add_key_commands(CLI::App& root, Context& context);
void add_store_commands(CLI::App& root, Context& context);
void add_script(CLI::App& root, Context& context);
void add_demo(CLI::App& root, Context& context);
void add_config_commands(CLI::App& root, Context& context);
void add_serve(CLI::App& root, Context& context);
void add_bench(CLI::App& root, Context& context);
void add_about_commands(CLI::App& root, Context& context);  // stores, version, completion
void print_version(bool json);

// Key commands in their own files.
void add_key_claim(CLI::App& family, Context& context);
void add_key_verbs(CLI::App& family, Context& context);
void add_key_views(CLI::App& family, Context& context);
void add_key_force_release(CLI::App& family, Context& context);
void add_key_resolve(CLI::App& family, Context& context);

// Store commands in their own files.
void add_store_doctor(CLI::App& family, Context& context);
void add_store_transfer(CLI::App& family, Context& context);  // export, import, migrate

// The completion script for bash, zsh or fish, made from the option tree.
[[nodiscard]] std::string completion_script(const CLI::App& root, const std::string& shell);

}  // namespace idem::cli
