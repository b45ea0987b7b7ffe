// The shards of a store, one behind the other: which one a key belongs to is told without a load.
// What their indexes begin with lies in one piece, so that a large one is on large pages: every
// call looks at some word of it.
#pragma once

#include <cstddef>
#include <memory>

#include "pages.hpp"
#include "shard.hpp"

namespace idem::memory {

class ShardArray {
 public:
  // Throws std::bad_alloc.
  ShardArray(std::size_t count, Shard::Options options)
      : index_(count * options.buckets * 8),
        first_(std::allocator<Shard>().allocate(count)),
        count_(count) {
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
  [[nodiscard]] std::size_t size() const { return count_; }
  [[nodiscard]] Shard* begin() const { return first_; }
  [[nodiscard]] Shard* end() const { return first_ + count_; }

 private:
  void release(std::size_t made) {
    std::destroy_n(first_, made);
    std::allocator<Shard>().deallocate(first_, count_);
  }

  const LargePages index_;
  Shard* const first_;
  const std::size_t count_;
};

}  // namespace idem::memory
