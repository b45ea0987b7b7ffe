// The hash of a key triple, with a secret of this process: a client that chooses its keys cannot
// choose their buckets. (A seed alone is no defence for XXH3: its default secret is public.)
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

#include "idem/key.hpp"

#define XXH_INLINE_ALL
#include <xxhash.h>

namespace idem::memory {

class KeyedHash {
 public:
  KeyedHash();  // a new secret, from OpenSSL
  [[nodiscard, gnu::always_inline]] inline std::uint64_t operator()(
      const KeyRef& key) const noexcept {
    return is_bare(key) ? of_bare(key.key) : of_any(key);
  }
  // Neither scoped nor overlong.
  [[nodiscard]] static bool is_bare(const KeyRef& key) noexcept {
    return (key.tenant.size() | key.biz_type.size()) == 0 && key.key.size() <= kKeyBytesMax;
  }
  // The hash of a bare key is part of its caller; that of any other is a call.
  [[nodiscard, gnu::always_inline]] inline std::uint64_t of_bare(
      std::string_view key) const noexcept {
    if (key.size() > kKeyBytesMax) __builtin_unreachable();
    return XXH3_64bits_withSecret(key.data(), key.size(), secret_.data(), secret_.size());
  }

 private:
  [[nodiscard]] std::uint64_t of_any(const KeyRef& key) const noexcept;

  std::array<std::uint8_t, 192> secret_;
};

}  // namespace idem::memory
