// The hash of a key triple, with a secret of this process: a client that chooses its keys cannot
// choose their buckets. (A seed alone is no defence for XXH3: its default secret is public.)
#pragma once

#include <array>
#include <cstdint>

#include "idem/key.hpp"

#define XXH_INLINE_ALL
#include <xxhash.h>

namespace idem::memory {

class KeyedHash {
 public:
  KeyedHash();  // a new secret, from OpenSSL
  // The hash of a bare key is part of its caller; that of a scoped or overlong one is a call.
  [[nodiscard, gnu::always_inline]] inline std::uint64_t operator()(
      const KeyRef& key) const noexcept {
    if (!key.biz_type.empty() || !key.tenant.empty() || key.key.size() > kKeyBytesMax) [[unlikely]]
      return of_any(key);
    return XXH3_64bits_withSecret(key.key.data(), key.key.size(), secret_.data(), secret_.size());
  }

 private:
  [[nodiscard]] std::uint64_t of_any(const KeyRef& key) const noexcept;

  std::array<std::uint8_t, 192> secret_;
};

}  // namespace idem::memory
