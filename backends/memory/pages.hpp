// Memory straight from the system: zero-filled, untouched until it is used.
#pragma once

#include <sys/mman.h>

#include <cstddef>

namespace idem::memory {

// nullptr: the system refused.
[[nodiscard]] inline void* map_pages(std::size_t bytes) noexcept {
  void* const at = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE,
                          MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  return at == MAP_FAILED ? nullptr : at;
}

inline void unmap_pages(void* at, std::size_t bytes) noexcept { ::munmap(at, bytes); }

// Gives the pages back to the system; they read as zero from now on.
inline void drop_pages(void* at, std::size_t bytes) noexcept {
  ::madvise(at, bytes, MADV_DONTNEED);
}

}  // namespace idem::memory
