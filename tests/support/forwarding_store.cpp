#include "idem/testing/forwarding_store.hpp"

namespace idem::testing {

bool ForwardingStore::watch(KeyRef key, std::function<void()> changed) {
  return behind_->watch(key, std::move(changed));
}

}  // namespace idem::testing
