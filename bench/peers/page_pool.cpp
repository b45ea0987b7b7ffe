#include "peers/page_pool.hpp"

#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <mutex>

namespace idem::bench {
namespace {

constexpr std::size_t kPage = 4096;
constexpr std::size_t kLarge = std::size_t{2} << 20;

struct Range {
  char* at = nullptr;
  std::size_t bytes = 0;
};

// No allocation in here: malloc itself is served by it.
struct Pool {
  std::mutex guard;
  char* begin = nullptr;
  char* end = nullptr;
  char* next = nullptr;
  std::size_t missed = 0;
  std::array<Range, 65536> back{};  // given back, zeroed
  std::size_t back_count = 0;

  [[nodiscard]] bool owns(const void* at) const {
    return at >= static_cast<const void*>(begin) && at < static_cast<const void*>(end);
  }
};
Pool pool;

void* system_mmap(void* at, std::size_t bytes, int protection, int flags, int file, off_t offset) {
  return reinterpret_cast<void*>(::syscall(SYS_mmap, at, bytes, protection, flags, file, offset));
}

void* take(std::size_t bytes) {
  const std::lock_guard<std::mutex> lock(pool.guard);
  for (std::size_t i = pool.back_count; i-- > 0;) {
    if (pool.back[i].bytes != bytes) continue;
    char* const at = pool.back[i].at;
    pool.back[i] = pool.back[--pool.back_count];
    return at;
  }
  const std::size_t align = bytes >= kLarge ? kLarge : kPage;
  const std::uintptr_t start =
      (reinterpret_cast<std::uintptr_t>(pool.next) + align - 1) & ~(align - 1);
  if (start + bytes > reinterpret_cast<std::uintptr_t>(pool.end)) {
    pool.missed += bytes;
    return nullptr;
  }
  pool.next = reinterpret_cast<char*>(start + bytes);
  return reinterpret_cast<void*>(start);
}

void give_back(char* at, std::size_t bytes) {
  std::memset(at, 0, bytes);
  const std::lock_guard<std::mutex> lock(pool.guard);
  if (pool.back_count < pool.back.size()) pool.back[pool.back_count++] = {at, bytes};
}

// As the system would for a fresh mapping, and touched as everything here is.
void make_large(char* at, std::size_t bytes) {
  ::syscall(SYS_madvise, at, bytes, MADV_HUGEPAGE);
  ::syscall(SYS_madvise, at, bytes, MADV_DONTNEED);
  for (std::size_t i = 0; i < bytes; i += kPage) static_cast<volatile char*>(at)[i] = 0;
}

}  // namespace

void open_page_pool(std::size_t bytes) {
  if (bytes == 0) return;
  void* const at = system_mmap(nullptr, bytes, PROT_READ | PROT_WRITE,
                               MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
  if (at == MAP_FAILED) {
    std::fprintf(stderr, "bench-peers: no %zu MiB for the page pool\n", bytes >> 20);
    std::exit(2);
  }
  for (std::size_t i = 0; i < bytes; i += kPage) static_cast<volatile char*>(at)[i] = 0;
  const std::lock_guard<std::mutex> lock(pool.guard);
  pool.begin = pool.next = static_cast<char*>(at);
  pool.end = pool.begin + bytes;
}

std::size_t page_pool_missed_bytes() {
  const std::lock_guard<std::mutex> lock(pool.guard);
  return pool.missed;
}

}  // namespace idem::bench

extern "C" {

void* mmap(void* at, std::size_t bytes, int protection, int flags, int file,
           off_t offset) noexcept {
  using namespace idem::bench;
  if (pool.begin != nullptr && at == nullptr && file == -1 && (flags & MAP_ANONYMOUS) != 0)
    if (void* const taken = take((bytes + kPage - 1) & ~(kPage - 1))) return taken;
  return system_mmap(at, bytes, protection, flags, file, offset);
}

int munmap(void* at, std::size_t bytes) noexcept {
  using namespace idem::bench;
  if (!pool.owns(at)) return static_cast<int>(::syscall(SYS_munmap, at, bytes));
  give_back(static_cast<char*>(at), (bytes + kPage - 1) & ~(kPage - 1));
  return 0;
}

int madvise(void* at, std::size_t bytes, int advice) noexcept {
  using namespace idem::bench;
  if (!pool.owns(at)) return static_cast<int>(::syscall(SYS_madvise, at, bytes, advice));
  if (advice == MADV_DONTNEED) std::memset(at, 0, bytes);
  if (advice == MADV_HUGEPAGE) make_large(static_cast<char*>(at), bytes);
  return 0;
}

}  // extern "C"
