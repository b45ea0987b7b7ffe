// The shards of a store, one behind the other: which one a key belongs to is told by bits of its
// hash that no place in a list is made of, without a load.
// What their indexes begin with lies in one piece, so that a large one is on large pages: every
// call looks at some word of it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

#include "pages.hpp"
#include "shard.hpp"

namespace idem::memory {

class ShardArray {
 public:
  // count: a power of two. Throws std::bad_alloc.
  ShardArray(std::size_t count, Shard::Options options)
      : index_(count * options.buckets * 8),
        first_(std::allocator<Shard>().allocate(count)),
        count_(count),
        lines_((count - 1) * kLine) {
    std::size_t made = 0;
    try {
      for (; made < count; ++made) {
        options.index = index_.at(made * options.buckets * 8);
        std::construct_at(first_ + made, options);
      }
    } catch (...) {
      release(made);
      throw;
    }
  }
  ~ShardArray() { release(count_); }
  ShardArray(const ShardArray&) = delete;
  ShardArray& operator=(const ShardArray&) = delete;

  [[nodiscard]] Shard& operator[](std::size_t index) const { return first_[index]; }
  [[nodiscard]] Shard& of(std::uint64_t hash) const {
    char* const base = reinterpret_cast<char*>(first_);
    return *reinterpret_cast<Shard*>(base + ((hash >> 32) & lines_) * (sizeof(Shard) / kLine));
  }
  [[nodiscard]] std::size_t size() const { return count_; }
  [[nodiscard]] Shard* begin() const { return first_; }
  [[nodiscard]] Shard* end() const { return first_ + count_; }

 private:
  void release(std::size_t made) {
    std::destroy_n(first_, made);
    std::allocator<Shard>().deallocate(first_, count_);
  }

  // An odd number of lines to a shard: side by side they meet in no set of a cache.
  static constexpr std::size_t kLine = 64;
  static_assert(sizeof(Shard) / kLine % 2 == 1 && sizeof(Shard) % kLine == 0);

  const LargePages index_;
  Shard* const first_;
  const std::size_t count_;
  const std::size_t lines_;  // the mask of a shard's number, times kLine
};

}  // namespace idem::memory
