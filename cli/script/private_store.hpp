// A store for one scenario: empty, nobody else's, removed afterwards.
#pragma once

#include <memory>
#include <string>

#include "context.hpp"

namespace idem::cli {

struct PrivateStore {
  std::shared_ptr<void> owner;  // removes what was made; declared before `store`
  StorePtr store;
};

// memory: and sqlite::memory: are private by themselves. sqlite:FILE becomes a new file beside FILE
// with the same parameters; FILE itself is never touched.
[[nodiscard]] PrivateStore open_private_store(const StoreChoice& choice, Clock& clock);

}  // namespace idem::cli
