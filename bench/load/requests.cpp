#include "load/requests.hpp"

#include <random>

namespace idem::bench {
namespace {

std::string key_text(std::mt19937_64& random) {
  static constexpr std::string_view kDigits = "0123456789abcdef";
  std::string text(36, '-');
  std::uint64_t bits = 0;
  unsigned left = 0;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (i == 8 || i == 13 || i == 18 || i == 23) continue;
    if (left == 0) {
      bits = random();
      left = 16;
    }
    text[i] = kDigits[bits & 15U];
    bits >>= 4U;
    --left;
  }
  return text;
}

Fingerprint fingerprint(std::mt19937_64& random) {
  Fingerprint made;
  for (std::size_t i = 0; i < made.bytes.size(); i += 8) {
    const std::uint64_t bits = random();
    for (std::size_t j = 0; j < 8; ++j)
      made.bytes[i + j] = static_cast<std::uint8_t>(bits >> (8 * j));
  }
  return made;
}

}  // namespace

Requests::Requests(std::uint32_t keys, std::uint64_t seed) {
  std::mt19937_64 random(seed);
  requests_.reserve(keys);
  for (std::uint32_t i = 0; i < keys; ++i) {
    std::string text = key_text(random);
    requests_.push_back({Key(std::move(text)), fingerprint(random)});
  }
}

void Requests::set_scope(std::string_view scope) {
  for (Request& request : requests_) request.key.tenant = scope;
}

}  // namespace idem::bench
