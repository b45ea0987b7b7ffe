// Pages touched before the clock starts. The first touch of a page costs microseconds on a virtual
// machine, whoever the owner; without the pool a race of growing tables measures the hypervisor.
//
// This program defines mmap, munmap and madvise itself: while a pool is open, private anonymous
// mappings of every table (through its malloc, or its own) come out of it, zero-filled.
#pragma once

#include <cstddef>

namespace idem::bench {

// Once, before anything else. 0: no pool, everything goes to the system.
void open_page_pool(std::size_t bytes);

// What the pool could not serve since it was opened: has to be 0 for a measurement to count.
[[nodiscard]] std::size_t page_pool_missed_bytes();

}  // namespace idem::bench
