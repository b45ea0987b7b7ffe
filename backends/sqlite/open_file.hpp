// From a path to a connection: what can be wrong with a place, found before anything is written.
#pragma once

#include "connection.hpp"
#include "idem/sqlite_store.hpp"

namespace idem::sqlite {

// The path every message names: absolute; ":memory:" stays.
[[nodiscard]] result<std::string> absolute_path(const std::string& path);

// The connection that writes: WAL, tables made or verified.
[[nodiscard]] result<Connection> open_writer(const std::string& path, const SqliteOptions& options);

// A connection that only reads and leaves the checkpoints to the writer.
[[nodiscard]] result<Connection> open_reader(const std::string& path, const SqliteOptions& options);

// As the file really is: what PRAGMA journal_mode and synchronous say.
[[nodiscard]] result<Durability> durability_of(Connection& connection);

}  // namespace idem::sqlite
