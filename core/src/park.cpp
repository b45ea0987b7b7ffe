#include "idem/park.hpp"

#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <climits>
#include <ctime>

namespace idem {
namespace {

static_assert(sizeof(ParkingWord) == sizeof(std::uint32_t) && ParkingWord::is_always_lock_free);

void futex(const ParkingWord& word, int operation, std::uint32_t value,
           const std::timespec* limit) noexcept {
  // Whatever it answers, the waiter looks at what it waits for.
  (void)::syscall(SYS_futex, &word, operation, value, limit, nullptr, 0);
}

}  // namespace

void park(const ParkingWord& word, std::uint32_t seen) noexcept {
  futex(word, FUTEX_WAIT_PRIVATE, seen, nullptr);
}

void park_for(const ParkingWord& word, std::uint32_t seen, Micros limit) noexcept {
  const std::int64_t us = std::max<std::int64_t>(limit.count(), 0);
  std::timespec relative{};
  relative.tv_sec = static_cast<std::time_t>(us / 1'000'000);
  relative.tv_nsec = static_cast<long>(us % 1'000'000 * 1'000);  // NOLINT: the field's type
  futex(word, FUTEX_WAIT_PRIVATE, seen, &relative);
}

void unpark_one(const ParkingWord& word) noexcept { futex(word, FUTEX_WAKE_PRIVATE, 1, nullptr); }

void unpark_all(const ParkingWord& word) noexcept {
  futex(word, FUTEX_WAKE_PRIVATE, INT_MAX, nullptr);
}

}  // namespace idem
