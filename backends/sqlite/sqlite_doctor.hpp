// What may be wrong with the place of a SQLite store, for `idem store doctor`.
#pragma once

#include <string_view>

#include "idem/backend.hpp"
#include "idem/sqlite_store.hpp"

namespace idem::sqlite {

// A file system as statfs(2) names it.
struct FileSystem {
  std::string_view name;   // "nfs"; "" if it is none of those that matter
  bool network = false;    // its locks cannot be trusted
  bool in_memory = false;  // its files are gone with the power
};
[[nodiscard]] FileSystem file_system_of(long type);

// Opens the file for reading only. What it finds is about the file, and about what `options` would
// make of it.
[[nodiscard]] Findings diagnose(const SqliteOptions& options,
                                std::optional<Durability> min_durability);

}  // namespace idem::sqlite
