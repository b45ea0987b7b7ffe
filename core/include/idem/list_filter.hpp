// What a ListQuery selects, for stores that look at every record themselves; a store with a query
// language says the same in it.
#pragma once

#include "idem/store.hpp"

namespace idem {

// Whether `record` belongs on a page of `query`. An expired record never does, although it may
// still lie in the store. `now` is the store's time. Pure; any thread.
[[nodiscard]] bool selects(const ListQuery& query, const KeyRef& key, const Record& record,
                           Time now);

}  // namespace idem
