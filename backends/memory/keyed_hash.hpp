// The hash of a key triple, with a secret of this process: a client that chooses its keys cannot
// choose their buckets. (A seed alone is no defence for XXH3: its default secret is public.)
#pragma once

#include <array>
#include <cstdint>

#include "idem/key.hpp"

namespace idem::memory {

class KeyedHash {
 public:
  KeyedHash();  // a new secret, from OpenSSL
  [[nodiscard]] std::uint64_t operator()(KeyRef key) const noexcept;

 private:
  std::array<std::uint8_t, 192> secret_;
};

}  // namespace idem::memory
