// The tables: made if they are not there, verified when a store is opened.
#pragma once

#include "session.hpp"

namespace idem::mysql {

inline constexpr std::uint64_t kSchemaVersion = 1;

// [A-Za-z0-9_]{1,48}: in statements without quotes.
[[nodiscard]] bool is_table_name(std::string_view name);

// cannot_open: what is there is not ours, or would not keep keys apart; the message names the
// column or key and the statement that mends it. denied: not there, and no right to make it.
[[nodiscard]] result<MysqlOptions::Layout> ensure_schema(Session& session,
                                                         const MysqlOptions& options,
                                                         const Budget& budget);

// Verifies the record's table. nullopt: there is none.
[[nodiscard]] result<std::optional<MysqlOptions::Layout>> check_records(Session& session,
                                                                        const std::string& table,
                                                                        const Budget& budget);

// As tables are made; two statements.
[[nodiscard]] std::string records_ddl(MysqlOptions::Layout layout, std::string_view table);
[[nodiscard]] std::string meta_ddl(std::string_view table);

}  // namespace idem::mysql
