// What the Backend value is made of beside open_mysql().
#pragma once

#include <string_view>

#include "idem/mysql_store.hpp"

namespace idem::mysql {

// A database of its own on a private server, or on the one that IDEM_MYSQL_SERVER names.
[[nodiscard]] result<Fixture> make_fixture(std::string_view variant, const OpenOptions& open);

// A store in a table of its own in the URL's database; the table goes with the fixture's owner.
// Needs the rights to make and to drop tables.
[[nodiscard]] result<Fixture> open_beside(const StoreUrl& url, const OpenOptions& open);

// For `idem store doctor`: every setting that matters. Only reads, and prepares statements.
[[nodiscard]] Findings diagnose(const StoreUrl& url, const DiagnoseOptions& options);

// One statement of text on a connection made for it.
[[nodiscard]] result<void> execute(const MysqlOptions& options, std::string_view statement);

}  // namespace idem::mysql
