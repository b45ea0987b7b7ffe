#include "buckets.hpp"

#include <new>

#include "idem/pause_point.hpp"
#include "pages.hpp"

namespace idem::memory {

Buckets::Buckets(std::uint32_t first, char* room)
    : level_(level_of(first)),
      owns_first_(room == nullptr),
      first_(first),
      first_bits_(static_cast<std::uint32_t>(std::bit_width(first)) - 1) {
  void* const at = owns_first_ ? map_pages(segment_bytes(0)) : room;
  auto* const words = static_cast<std::atomic<std::uint64_t>*>(at);
  if (words == nullptr) throw std::bad_alloc();
  segments_[0].store(reinterpret_cast<std::uintptr_t>(words));
  // In list order: the buckets by their reversed number.
  std::uint32_t bucket = 0;
  for (std::uint32_t rank = 1; rank < first; ++rank) {
    const std::uint32_t next = reverse_bits(rank) >> (32 - first_bits_);
    words[bucket].store(Link::to_marker(next).bits());
    bucket = next;
  }
  words[bucket].store(Link::end().bits());
}

Buckets::~Buckets() {
  for (std::uint32_t segment = owns_first_ ? 0 : 1; segment < segments_.size(); ++segment)
    if (segments_[segment].load() != 0) unmap_pages(segment_pages(segment), segment_bytes(segment));
}

std::uint32_t Buckets::grow(std::uint32_t count) {
  if (count >= kBucketsMax) return 0;
  const std::uint32_t segment = segment_of(count);
  if (segments_[segment].load(std::memory_order_acquire) == 0) {
    const std::size_t bytes = segment_bytes(segment);
    void* const words = map_pages(bytes);
    if (words == nullptr) return 0;  // no memory for an index: the old one serves, more slowly
    IDEM_PAUSE_POINT("memory.grow.segment");
    std::uintptr_t none = 0;
    const std::uintptr_t origin =
        reinterpret_cast<std::uintptr_t>(words) - std::uintptr_t{segment_first(segment)} * 8;
    // release: pairs with word()
    if (!segments_[segment].compare_exchange_strong(none, origin, std::memory_order_acq_rel))
      unmap_pages(words, bytes);
  }
  // release: pairs with count(): whoever sees the count finds the segment
  std::uint64_t level = level_of(count);
  if (!level_.compare_exchange_strong(level, level_of(count + kStep), std::memory_order_acq_rel))
    return 0;
  IDEM_PAUSE_POINT("memory.grow.count");
  return count;
}

}  // namespace idem::memory
