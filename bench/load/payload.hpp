// Results that prove where they come from: every byte follows from the key and the fence.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace idem::bench {

// Immutable after construction; share freely.
class Payload {
 public:
  // bytes >= kPayloadMin
  Payload(std::uint32_t bytes, std::uint64_t seed);

  // Overwrites `into`, whose buffer is reused.
  void write(std::uint32_t key, std::uint64_t fence, std::string& into) const;

  // The fence of the attempt that made `result`; nullopt unless it is, byte for byte, what write()
  // made for this key and that fence.
  [[nodiscard]] std::optional<std::uint64_t> fence_of(std::uint32_t key,
                                                      std::string_view result) const;

 private:
  [[nodiscard]] std::string_view filler(std::uint32_t key, std::uint64_t fence) const;

  std::uint32_t bytes_;
  std::string noise_;
};

}  // namespace idem::bench
