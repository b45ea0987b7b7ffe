// Keys made before the timer: 36 characters each, one after the other in one block, so that a key
// is used where it lies and has been there for a while (a key copied just before the call would
// make its hash wait for the copy).
#pragma once

#include <cstdint>
#include <string>

#include "idem/key.hpp"

namespace idem::bench {

class KeyBlock {
 public:
  KeyBlock() = default;
  // `series`: blocks of different series share no key.
  KeyBlock(std::uint64_t series, std::size_t count);

  [[nodiscard]] KeyRef operator[](std::size_t i) const {
    return {{}, {}, std::string_view(text_).substr(i * kBytes, kBytes)};
  }
  [[nodiscard]] std::size_t size() const { return text_.size() / kBytes; }

 private:
  static constexpr std::size_t kBytes = 36;
  std::string text_;
};

// Random numbers for drawing keys in the timed loop: about a nanosecond each.
class Draw {
 public:
  explicit Draw(std::uint64_t seed) : state_(seed * 0x9e3779b97f4a7c15U + 1) {}
  std::size_t below(std::size_t n) {
    state_ = state_ * 6364136223846793005U + 1442695040888963407U;  // Knuth's MMIX generator
    return static_cast<std::size_t>(state_ >> 33U) % n;
  }

 private:
  std::uint64_t state_;
};

}  // namespace idem::bench
