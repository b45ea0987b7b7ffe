// The hash of a key triple, with a secret of this process: a client that chooses its keys cannot
// choose their buckets. (A seed alone is no defence for XXH3: its default secret is public.)
#pragma once

#include <array>
#include <bit>
#include <cstdint>
#include <string_view>

#include "idem/key.hpp"

#define XXH_INLINE_ALL
#include <xxhash.h>

namespace idem::memory {

class KeyedHash {
 public:
  KeyedHash();  // a new secret, from OpenSSL
  [[nodiscard]] std::uint64_t operator()(const KeyRef& key) const noexcept {
    const std::uint64_t of_key = hash(key.key);
    if (key.biz_type.empty() && key.tenant.empty()) return of_key;
    // Each part hashed where it lies, then mixed so that the same text counts differently in each.
    std::uint64_t mixed = of_key + std::rotl(hash(key.biz_type) * 0x9E3779B97F4A7C15U, 21) +
                          std::rotl(hash(key.tenant) * 0xC2B2AE3D27D4EB4FU, 43);
    mixed ^= mixed >> 32;
    mixed *= 0xD6E8FEB86659FD93U;
    return mixed ^ mixed >> 32;
  }

 private:
  [[nodiscard]] std::uint64_t hash(std::string_view text) const noexcept {
    return XXH3_64bits_withSecret(text.data(), text.size(), secret_.data(), secret_.size());
  }

  std::array<std::uint8_t, 192> secret_;
};

}  // namespace idem::memory
