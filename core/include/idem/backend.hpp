// How a backend makes itself known: one Backend value, returned by one function that
// backends/CMakeLists.txt lists. Drives open(), the command line, the benchmark and the suite.
#pragma once

#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "idem/clock.hpp"
#include "idem/store.hpp"
#include "idem/store_url.hpp"

namespace idem {

struct Backend;

struct OpenOptions {
  Clock* clock = nullptr;  // nullptr: system_clock(). Must outlive the store
  // Where a store made of stores finds their backends. open() and make_fixture() fill it in.
  std::span<const Backend> registry = {};
};

// A private, empty store for tests and measurements; what it made goes with it.
struct Fixture {
  std::string url;              // opens it again: a second connection, if multi-process
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
  std::string schema = {};  // what the store makes, for `idem store schema`: SQL, or a description
};

// Opens `url` with the backend of options.registry that knows its scheme.
[[nodiscard]] result<StorePtr> open_in_registry(std::string_view url, const OpenOptions& options);

}  // namespace idem
