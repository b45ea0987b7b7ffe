#include "idem/record.hpp"

#include <openssl/rand.h>

#include <cstdlib>

#include "hex.hpp"

namespace idem {

std::string_view to_string(Status status) noexcept {
  switch (status) {
    case Status::processing:
      return "processing";
    case Status::success:
      return "success";
    case Status::failed:
      return "failed";
  }
  return "?";
}

std::string_view to_string(FailKind kind) noexcept {
  switch (kind) {
    case FailKind::none:
      return "none";
    case FailKind::retryable:
      return "retryable";
    case FailKind::final:
      return "final";
    case FailKind::abandoned:
      return "abandoned";
  }
  return "?";
}

Owner Owner::random() {
  Owner owner;
  // Without randomness no token is unique: there is no safe way to go on.
  if (RAND_bytes(owner.bytes.data(), static_cast<int>(owner.bytes.size())) != 1) std::abort();
  return owner;
}

result<Owner> Owner::from_hex(std::string_view hex) {
  const auto bytes = detail::from_hex<16>(hex);
  if (!bytes) return idem::fail(errc::invalid_argument, "an owner token is 32 hexadecimal digits");
  return Owner{*bytes};
}

std::string Owner::hex() const { return detail::to_hex(bytes); }

}  // namespace idem
