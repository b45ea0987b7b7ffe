// What administration asks of a store: pages of records, numbers, and what the server is.
#pragma once

#include "work.hpp"

namespace idem::mysql {

[[nodiscard]] result<Page> list(const Work& work, const ListQuery& query);
[[nodiscard]] result<StoreStats> stats(const Work& work);

// How durable a commit is, as the server is set now.
[[nodiscard]] result<Durability> durability(Session& session, const Budget& budget);

}  // namespace idem::mysql
