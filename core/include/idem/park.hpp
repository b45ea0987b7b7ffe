// Sleeping until a word changes: the system's futex, without what std::atomic's wait does first.
// That yields the processor four times before it sleeps, which costs a crowd of callers more than
// the sleep.
//
//   waiter   seen = word.load(acquire); if nothing has happened yet, park(word, seen); look again
//   waker    makes it happen; changes the word (release); unpark_...(word)
//
// Whoever was told may be gone, and the word with it, before it is unparked: only the address is
// used, and a stray wake-up is harmless where the waiter looks again.
#pragma once

#include <atomic>
#include <cstdint>

#include "idem/time.hpp"

namespace idem {

using ParkingWord = std::atomic<std::uint32_t>;

// Returns at once if the word is not `seen` any more; else when it is unparked, or for no reason.
void park(const ParkingWord& word, std::uint32_t seen) noexcept;
// As park(), and after `limit` of real time.
void park_for(const ParkingWord& word, std::uint32_t seen, Micros limit) noexcept;

void unpark_one(const ParkingWord& word) noexcept;
// All of them for the price of one call of the system.
void unpark_all(const ParkingWord& word) noexcept;

}  // namespace idem
