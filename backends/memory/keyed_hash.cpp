#include "keyed_hash.hpp"

#include <openssl/rand.h>

#include <bit>
#include <cstdlib>
#include <string_view>

namespace idem::memory {

KeyedHash::KeyedHash() : secret_() {
  // Without a secret the store could be flooded: there is no safe way to go on.
  if (RAND_bytes(secret_.data(), static_cast<int>(secret_.size())) != 1) std::abort();
}

std::uint64_t KeyedHash::of_any(const KeyRef& key) const noexcept {
  const auto hash = [&](std::string_view text) {
    return XXH3_64bits_withSecret(text.data(), text.size(), secret_.data(), secret_.size());
  };
  // Each part hashed where it lies, then mixed so that the same text counts differently in each.
  std::uint64_t mixed = hash(key.key) + std::rotl(hash(key.biz_type) * 0x9E3779B97F4A7C15U, 21) +
                        std::rotl(hash(key.tenant) * 0xC2B2AE3D27D4EB4FU, 43);
  mixed ^= mixed >> 32;
  mixed *= 0xD6E8FEB86659FD93U;
  return mixed ^ mixed >> 32;
}

}  // namespace idem::memory
