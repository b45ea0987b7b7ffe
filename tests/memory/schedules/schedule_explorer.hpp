// Runs the real code under every schedule, one after the other.
//
// A trial is a few threads and a verdict. Exactly one of the threads runs at a time; at each pause
// point (idem/pause_point.hpp) the explorer chooses who goes on. It goes through all choices depth
// first, those with no preemption first, then those with one, and so on up to a bound: Musuvathi
// and Qadeer, "Iterative context bounding for systematic testing of multithreaded programs" (2007).
// A switch away from a thread that could go on is a preemption; one from a thread that has ended is
// free. Nothing is random: a schedule is told by its choices, and repeated from them.
//
// What it does not show: a step from one pause point to the next is taken as a whole, and each sees
// all that was written before, as if memory were sequentially consistent. Weaker orders are
// ThreadSanitizer's and the proofs' at the atomics; the one argument that hangs on them is explored
// in epoch_tso_test.cpp.
//
// Cost. A schedule is its trial plus some ten hand-overs between threads.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <vector>

namespace idem::schedules {

struct Verdict {
  std::string broken;   // what does not hold; empty: all does
  std::string outcome;  // which of the ways it may end this was
};

// Made anew for each schedule. Must do the same whenever the same choices are made: no random
// hashes, no real time, nothing left over from the trial before.
struct Trial {
  std::vector<std::function<void()>> threads;  // at most kThreadsMost; must not wait for each other
  std::function<Verdict()> verdict;            // called when all have ended, outside of them
};
inline constexpr std::size_t kThreadsMost = 4;

struct Options {
  std::size_t preemptions = 2;
  // A thread that passes more points than this without ending waits for one that is stopped.
  std::size_t points_most = 10'000;
  // One schedule, as a report tells it, instead of all: "0x5,1x12" is five steps of thread 0, then
  // twelve of thread 1; who ends what is left is chosen by the explorer. Empty: all.
  std::string replay;
};

struct Report {
  std::vector<std::uint64_t> schedules;  // with so many preemptions
  std::size_t longest = 0;               // steps of the longest one
  std::set<std::string> points;          // that were passed
  std::map<std::string, std::uint64_t> outcomes;
  // The first schedule whose trial broke; nothing was run after it.
  std::string broken;    // what did not hold; empty: all trials held
  std::string schedule;  // to be replayed
  std::string trace;     // a line a step: the thread, and where the step ended

  [[nodiscard]] std::uint64_t total() const;
};

// One call at a time in a process: it owns the pause points' hook meanwhile.
[[nodiscard]] Report explore(const Options& options, const std::function<Trial()>& make);

// Within a trial's thread: does work whose pause points are passed over, as part of a step.
void unobserved(const std::function<void()>& work);

// For a person: counts, or what broke, how to repeat it, and its steps.
[[nodiscard]] std::string describe(const Report& report);

}  // namespace idem::schedules
