// The fingerprint (`request_hash`): the SHA-256 that says whether two requests are the same one.
//
// Two helpers, chosen by the caller; of_bytes is the default everywhere. Both give the same value
// in every run, process and build.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "idem/error.hpp"

namespace idem {

struct Fingerprint {
  std::array<std::uint8_t, 32> bytes{};

  // SHA-256 of exactly these bytes.
  [[nodiscard]] static Fingerprint of_bytes(std::string_view request);

  // SHA-256 of the canonical form of a JSON text: no insignificant white space, object members
  // sorted by name, array order kept, numbers as they are written ("1.0" and "1" differ).
  // invalid_argument: not JSON, a member name twice in one object, or nested deeper than 256.
  [[nodiscard]] static result<Fingerprint> of_json(std::string_view request);

  // 64 hexadecimal digits, either case.
  [[nodiscard]] static result<Fingerprint> from_hex(std::string_view hex);
  [[nodiscard]] std::string hex() const;

  friend bool operator==(const Fingerprint&, const Fingerprint&) = default;
};

// Fingerprint::of_bytes of bytes that come in pieces and need not be in memory together. Not thread
// safe.
class FingerprintStream {
 public:
  FingerprintStream();
  FingerprintStream(FingerprintStream&&) noexcept;
  FingerprintStream& operator=(FingerprintStream&&) noexcept;
  ~FingerprintStream();
  void add(std::string_view piece);
  // Of all that was added; the stream then begins anew.
  [[nodiscard]] Fingerprint end();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

// The canonical text whose SHA-256 is Fingerprint::of_json.
[[nodiscard]] result<std::string> canonical_json(std::string_view text);

}  // namespace idem
