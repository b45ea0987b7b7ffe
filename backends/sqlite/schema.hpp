// The tables: made, or verified, when a file is opened.
#pragma once

#include "connection.hpp"

namespace idem::sqlite {

// Kept in idempotent_meta, not in PRAGMA user_version: the file may hold the application's own
// tables, whose migrations use that one.
inline constexpr int kSchemaVersion = 1;

extern const char* const kSchemaSql;

// Makes what is missing, in one transaction, and verifies what is there: every column with its type
// and the unique key with its comparison. Nothing is changed if something else is in the way.
[[nodiscard]] result<void> ensure_schema(Connection& connection);

// Only verifies; cannot_open if the tables are not there.
[[nodiscard]] result<void> verify_schema(Connection& connection);

}  // namespace idem::sqlite
