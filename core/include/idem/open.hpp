// Opens a store by URL: link idem::idem, which holds every backend that was built.
//
//   memory:?shards=64&max_entries=1M&max_bytes=1GiB
//   sqlite:relative.db   sqlite:///relative.db   sqlite:////absolute.db   sqlite::memory:
//   redis://[user:pw@]host:port/db   rediss://   redis+unix:///path   redis+cluster://host:port
//   tiered:?front=<url, percent-encoded>&back=<url, percent-encoded>
#pragma once

#include <span>
#include <string_view>

#include "idem/backend.hpp"

namespace idem {

// invalid_argument: unknown scheme or parameter, malformed URL. Otherwise what the backend says.
[[nodiscard]] result<StorePtr> open(std::string_view url, const OpenOptions& options = {});

// Whether both URLs name one store, however it is written: "sqlite:t.db" and "sqlite:./t.db".
[[nodiscard]] bool same_store(std::string_view one, std::string_view other);

// A private, empty store of one backend's variant ("sqlite", "file"), for tests and measurements.
[[nodiscard]] result<Fixture> make_fixture(std::string_view backend, std::string_view variant = "",
                                           const OpenOptions& options = {});

// A private, empty store at the place `url` names, which is not touched: for scenarios.
[[nodiscard]] result<Fixture> open_beside(std::string_view url, const OpenOptions& options = {});

// Looks over the place that `url` names; writes nothing into it.
[[nodiscard]] Findings diagnose(std::string_view url, const DiagnoseOptions& options = {});

// Every backend of this build, in the order of choice: simplest first.
[[nodiscard]] std::span<const Backend> backends();

}  // namespace idem
