#include "load/payload.hpp"

#include <cstring>
#include <random>

#include "load/workload.hpp"

namespace idem::bench {
namespace {

// Fillers start at one of so many places of the noise, chosen by key and fence.
constexpr std::uint64_t kStarts = 256;

struct Head {
  std::uint64_t key;
  std::uint64_t fence;
};
static_assert(sizeof(Head) == kPayloadMin);

}  // namespace

Payload::Payload(std::uint32_t bytes, std::uint64_t seed) : bytes_(bytes) {
  std::mt19937_64 random(seed);
  noise_.reserve(bytes + kStarts);
  while (noise_.size() < bytes + kStarts) noise_.push_back(static_cast<char>(random() & 0xffU));
}

std::string_view Payload::filler(std::uint32_t key, std::uint64_t fence) const {
  return std::string_view(noise_).substr((key ^ fence) % kStarts, bytes_ - sizeof(Head));
}

void Payload::write(std::uint32_t key, std::uint64_t fence, std::string& into) const {
  const Head head{key, fence};
  into.assign(reinterpret_cast<const char*>(&head), sizeof head);
  into.append(filler(key, fence));
}

std::optional<std::uint64_t> Payload::fence_of(std::uint32_t key, std::string_view result) const {
  if (result.size() != bytes_) return std::nullopt;
  Head head{};
  std::memcpy(&head, result.data(), sizeof head);
  if (head.key != key || result.substr(sizeof head) != filler(key, head.fence)) return std::nullopt;
  return head.fence;
}

}  // namespace idem::bench
