// What administration asks of a store: pages of records, numbers, and what the server is.
#pragma once

#include "work.hpp"

namespace idem::mysql {

[[nodiscard]] result<Page> list(const Work& work, const ListQuery& query);
[[nodiscard]] result<StoreStats> stats(const Work& work);

// "mariadb 10.11..." or "mysql 9...", from the server's version.
[[nodiscard]] std::string backend_name(std::string_view version);
// The largest result, where a packet may have so many bytes.
[[nodiscard]] std::uint64_t result_bytes_max(std::uint64_t packet_bytes_max);

// How durable a commit is, as the server is set now.
[[nodiscard]] result<Durability> durability(Session& session, const Budget& budget);

}  // namespace idem::mysql
