#include "keyed_hash.hpp"

#include <openssl/rand.h>

#include <cstdlib>

namespace idem::memory {

KeyedHash::KeyedHash() : secret_() {
  // Without a secret the store could be flooded: there is no safe way to go on.
  if (RAND_bytes(secret_.data(), static_cast<int>(secret_.size())) != 1) std::abort();
}

}  // namespace idem::memory
