// What every command shares: the global options, the chosen store, the work to be done.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "failure.hpp"
#include "idem/open.hpp"
#include "idem/service.hpp"
#include "render.hpp"

namespace idem::cli {

// Filled by the parse; lives until the command ends.
struct Context {
  std::string store_url;                  // --store; empty: IDEM_STORE
  bool json = false;                      // --json
  std::vector<std::string> command_line;  // run: what stands after "--"
  std::function<ExitCode()> action;       // the command that was named
};

struct StoreChoice {
  std::string url;
  std::string from;  // "--store redis://u:***@h": for error texts
};

// --store, else IDEM_STORE, else empty.
[[nodiscard]] StoreChoice named_store(const Context& context);
// As named_store; a Failure if there is none.
[[nodiscard]] StoreChoice chosen_store(const Context& context);
// For looking and tidying: the file of `idem run` counts as named, once it exists.
[[nodiscard]] StoreChoice chosen_store_or_runs(const Context& context);

// Opens it. A SQLite file's absolute path is told on standard error: the forms with three and four
// slashes are easily mistaken. To whoever must not wait for the reader it is given as `news`
// instead.
[[nodiscard]] StorePtr open_store(const StoreChoice& choice, const OpenOptions& options = {},
                                  std::string* news = nullptr);

// As open_store(), for commands whose work is to outlive them: a store that ends with this process
// is refused.
[[nodiscard]] StorePtr open_lasting_store(const StoreChoice& choice,
                                          const OpenOptions& options = {},
                                          std::string* news = nullptr);

// As open_lasting_store(), but a store that is not there yet is not made: for all commands that
// look, or end what was begun. A mistyped path would else become an empty store in which every key
// is free.
[[nodiscard]] StorePtr open_existing_store(const StoreChoice& choice);

// The file a sqlite: URL names; empty for every other URL and for sqlite::memory:.
[[nodiscard]] std::string sqlite_path(std::string_view url);

// The whole of a file of at most 256 MiB, "-" for standard input.
[[nodiscard]] std::string read_file(const std::string& path);

// Prints an outcome: JSON, or text about `subject`.
void print_answer(const Context& context, const Json& answer, std::string_view subject);
// Plain text to standard output.
void print_text(std::string_view text);

}  // namespace idem::cli
