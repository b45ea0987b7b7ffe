// How a backend makes itself known: one Backend value, returned by one function that
// backends/CMakeLists.txt lists. Drives open(), the command line, the benchmark and the suite.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "idem/clock.hpp"
#include "idem/finding.hpp"
#include "idem/store.hpp"
#include "idem/store_url.hpp"

namespace idem {

struct Backend;
struct DiagnoseOptions;

struct OpenOptions {
  Clock* clock = nullptr;  // nullptr: system_clock(). Must outlive the store
  // Where a store made of stores finds their backends. open() and make_fixture() fill it in.
  std::span<const Backend> registry = {};
  // False: a store that is not there yet is not made, no file and no table, but cannot_open. For
  // whoever only looks or ends what was begun: a mistyped place must not become an empty store.
  bool create = true;
  // Told, in a sentence each, what open() found doubtful but not forbidden; may be empty.
  std::function<void(std::string_view)> warn = {};
};

// A private, empty store for tests and measurements; what it made goes with it.
struct Fixture {
  std::string url;              // opens it again: a second connection; "" if there is no way
  std::shared_ptr<void> owner;  // removes files, stops servers; declared before `store`
  StorePtr store;
};

struct Backend {
  std::string name;                    // "memory"
  std::vector<std::string> schemes;    // "memory"
  std::vector<std::string> url_forms;  // for help: "memory:?shards=64&max_entries=N"
  std::string summary;                 // one line for a person
  std::string client;                  // client library and version, "" if none
  std::function<result<StorePtr>(const StoreUrl&, const OpenOptions&)> open;
  // Variants to be tested and measured: name -> how to make one. `variant` empty: the default.
  std::vector<std::string> variants;
  std::function<result<Fixture>(std::string_view variant, const OpenOptions&)> fixture;
  // What the store makes at the place that the URL names, for `idem store schema`: SQL, or a
  // description. Asks no server. Empty: nothing.
  std::function<result<std::string>(const StoreUrl&)> schema = {};
  // A private, empty store at the place that the URL names: a file beside it, a prefix or a table
  // of its own on the same server. What is there already is not touched. For scenarios.
  std::function<result<Fixture>(const StoreUrl&, const OpenOptions&)> beside = {};
  // Looks over the place that the URL names, and writes nothing of its own into it.
  std::function<Findings(const StoreUrl&, const DiagnoseOptions&)> diagnose = {};
  // The place that the URL names, the same text for every way to write it: a file's full path, a
  // server's host, port, database and table. "": each opening is a store of its own, or the URL is
  // wrong.
  std::function<std::string(const StoreUrl&)> identity = {};
};

struct DiagnoseOptions {
  OpenOptions open;
  std::optional<Durability> min_durability;  // less is bad
};

// The backend that knows the URL's scheme. invalid_argument: none does; with what was meant.
[[nodiscard]] result<const Backend*> backend_in_registry(const StoreUrl& url,
                                                         std::span<const Backend> registry);

// Opens `url` with the backend of options.registry that knows its scheme.
[[nodiscard]] result<StorePtr> open_in_registry(std::string_view url, const OpenOptions& options);

// Whether both URLs name one store, as far as their text and Backend::identity tell: a server may
// still have two names.
[[nodiscard]] bool same_store_in_registry(std::string_view one, std::string_view other,
                                          std::span<const Backend> registry);

// Backend::beside of that backend; unsupported if it has none.
[[nodiscard]] result<Fixture> beside_in_registry(std::string_view url, const OpenOptions& options);

// Backend::diagnose of that backend. What cannot even be asked is a bad finding, too.
[[nodiscard]] Findings diagnose_in_registry(std::string_view url, const DiagnoseOptions& options);

}  // namespace idem
