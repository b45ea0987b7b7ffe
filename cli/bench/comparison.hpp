// What the commands that compare have in common: the table, the document, and --fail-on.
#pragma once

#include <CLI/CLI.hpp>
#include <string>
#include <vector>

#include "context.hpp"
#include "load/compare.hpp"

namespace idem::cli {

void add_fail_on(CLI::App* leaf, std::string& into);

// "regression:5%": the loss from which on a slower row fails; "": none fails. Throws Failure.
[[nodiscard]] double parse_fail_on(const std::string& text);

// To standard output: a table, or with --json `head` and the rows as one document. `proof`: what
// shows a difference, "rounds" or "pairs".
void print_comparison(const Context& context, const std::vector<bench::Comparison>& rows,
                      const std::string& proof, Json head = Json::object());

// check_failed if a row is slower by `limit` or more, beyond doubt.
[[nodiscard]] ExitCode exit_code(const std::vector<bench::Comparison>& rows, double limit);

}  // namespace idem::cli
