// The idempotency key and its scope: what names a request.
//
// Identity is the triple (tenant, biz_type, key), compared byte for byte. Nothing is ever trimmed,
// folded, normalised or cut.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "idem/error.hpp"

namespace idem {

inline constexpr std::size_t kKeyBytesMax = 128;
inline constexpr std::size_t kBizTypeBytesMax = 32;
inline constexpr std::size_t kTenantBytesMax = 64;

// Borrows its text; cheap to copy.
struct KeyRef {
  std::string_view tenant;
  std::string_view biz_type;
  std::string_view key;

  friend bool operator==(const KeyRef&, const KeyRef&) = default;
  friend auto operator<=>(const KeyRef&, const KeyRef&) = default;
};

// Owns its text.
struct Key {
  std::string tenant;
  std::string biz_type;
  std::string key;

  Key() = default;
  Key(std::string key_text) : key(std::move(key_text)) {}  // NOLINT: a bare key is a Key
  Key(const char* key_text) : key(key_text) {}             // NOLINT: a bare key is a Key
  Key(std::string tenant_text, std::string biz_type_text, std::string key_text)
      : tenant(std::move(tenant_text)),
        biz_type(std::move(biz_type_text)),
        key(std::move(key_text)) {}
  explicit Key(KeyRef ref) : tenant(ref.tenant), biz_type(ref.biz_type), key(ref.key) {}

  operator KeyRef() const { return {tenant, biz_type, key}; }  // NOLINT: a Key is a KeyRef

  friend bool operator==(const Key&, const Key&) = default;
  friend auto operator<=>(const Key&, const Key&) = default;
};

// Key 1..128 bytes, biz_type 0..32, tenant 0..64, each valid UTF-8 without control characters
// (U+0000..U+001F, U+007F..U+009F) and, unless empty, not blank only. Sizes are bytes: 128 CJK
// characters (384 bytes) are too long. invalid_argument otherwise, naming the part and the rule.
[[nodiscard]] result<void> check_key(KeyRef key);

// One name for the triple, for stores that have one key column or none: injective, because each
// part but the last is preceded by its length ("3:pay..."). At most 236 bytes for a valid key.
[[nodiscard]] std::string storage_name(KeyRef key);

// The way back; invalid_argument if the text is not a storage name.
[[nodiscard]] result<Key> parse_storage_name(std::string_view name);

// A key from business facts, for messages and callbacks whose delivery id changes at every retry:
//
//   KeyBuilder("PAY").add(order_id).add(sequence).key()     "PAY|ORD-9|3"
//
// The same facts in the same order give the same key, in every process and build; different facts
// give different keys (the separator is escaped inside a fact). Longer than 128 bytes, the key is
// the first fact's readable head followed by the SHA-256 of all of it.
class KeyBuilder {
 public:
  explicit KeyBuilder(std::string_view action);
  KeyBuilder& add(std::string_view fact);
  KeyBuilder& add(std::int64_t fact);
  [[nodiscard]] std::string key() const;

 private:
  std::string text_;
};

}  // namespace idem
