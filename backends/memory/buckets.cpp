#include "buckets.hpp"

#include <new>

#include "idem/pause_point.hpp"
#include "pages.hpp"

namespace idem::memory {

Buckets::Buckets(std::uint32_t first)
    : first_bits_(static_cast<std::uint32_t>(std::bit_width(first)) - 1),
      size_(first),
      link_cursor_(first) {
  auto* const words = static_cast<std::atomic<std::uint64_t>*>(map_pages(segment_bytes(0)));
  if (words == nullptr) throw std::bad_alloc();
  segments_[0].store(words);
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
  for (std::uint32_t segment = 0; segment < segments_.size(); ++segment)
    if (auto* const words = segments_[segment].load()) unmap_pages(words, segment_bytes(segment));
}

std::atomic<std::uint64_t>& Buckets::start(std::uint32_t bucket) const {
  for (;;) {
    std::atomic<std::uint64_t>& found = word(bucket);
    const Link link(found.load());
    if (link.bits() != 0 && !link.flagged()) return found;
    bucket &= ~std::bit_floor(bucket);
  }
}

void Buckets::grow(std::uint32_t size) {
  if (size >= kBucketsMax) return;
  const auto segment = static_cast<std::uint32_t>(std::bit_width(size >> first_bits_));
  if (segments_[segment].load(std::memory_order_acquire) == nullptr) {
    const std::size_t bytes = segment_bytes(segment);
    auto* const words = static_cast<std::atomic<std::uint64_t>*>(map_pages(bytes));
    if (words == nullptr) return;  // no memory for an index: the old one serves, more slowly
    IDEM_PAUSE_POINT("memory.grow.segment");
    std::atomic<std::uint64_t>* none = nullptr;
    // release: pairs with word()
    if (!segments_[segment].compare_exchange_strong(none, words, std::memory_order_acq_rel))
      unmap_pages(words, bytes);
  }
  IDEM_PAUSE_POINT("memory.grow.size");
  // release: pairs with size(): whoever sees the size finds the segment
  size_.compare_exchange_strong(size, size * 2, std::memory_order_acq_rel);
}

std::uint32_t Buckets::next_to_link() {
  // relaxed: only deals out numbers; a bucket too many or too few costs a longer walk
  if (link_cursor_.load(std::memory_order_relaxed) >= size()) return 0;
  const std::uint32_t bucket = link_cursor_.fetch_add(1, std::memory_order_relaxed);
  return bucket < size() ? bucket : 0;
}

}  // namespace idem::memory
