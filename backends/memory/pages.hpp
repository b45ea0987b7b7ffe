// Memory straight from the system: zero-filled, untouched until it is used.
#pragma once

#include <sys/mman.h>

#include <cstddef>
#include <cstdint>
#include <new>

namespace idem::memory {

// nullptr: the system refused.
[[nodiscard]] inline void* map_pages(std::size_t bytes) noexcept {
  void* const at = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE,
                          MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  return at == MAP_FAILED ? nullptr : at;
}

inline void unmap_pages(void* at, std::size_t bytes) noexcept { ::munmap(at, bytes); }

// What the system calls a huge page.
inline constexpr std::size_t kLargePage = std::size_t{2} << 20;

// As map_pages; from kLargePage on, large pages if the system has some: for what is looked at
// everywhere and never given back in part. Where a word lies is then found with fewer misses.
[[nodiscard]] inline void* map_large_pages(std::size_t bytes) noexcept {
  if (bytes < kLargePage) return map_pages(bytes);
  const auto ahead = [](void* at) {  // of the next boundary
    return -reinterpret_cast<std::uintptr_t>(at) & (kLargePage - 1);
  };
  void* at = map_pages(bytes);
  if (at != nullptr && ahead(at) != 0) {
    unmap_pages(at, bytes);
    at = map_pages(bytes + kLargePage);
    if (at == nullptr) return nullptr;
    char* const first = static_cast<char*>(at) + ahead(at);
    if (ahead(at) != 0) unmap_pages(at, ahead(at));
    unmap_pages(first + bytes, kLargePage - ahead(at));
    at = first;
  }
  if (at != nullptr) ::madvise(at, bytes, MADV_HUGEPAGE);
  return at;
}

// A piece of memory from the system that is there as long as this is.
class LargePages {
 public:
  explicit LargePages(std::size_t bytes) : bytes_(bytes), at_(map_large_pages(bytes)) {
    if (at_ == nullptr) throw std::bad_alloc();
  }
  ~LargePages() { unmap_pages(at_, bytes_); }
  LargePages(const LargePages&) = delete;
  LargePages& operator=(const LargePages&) = delete;
  [[nodiscard]] char* at(std::size_t byte) const { return static_cast<char*>(at_) + byte; }

 private:
  const std::size_t bytes_;
  void* const at_;
};

// Gives the pages back to the system; they read as zero from now on.
inline void drop_pages(void* at, std::size_t bytes) noexcept {
  ::madvise(at, bytes, MADV_DONTNEED);
}

}  // namespace idem::memory
