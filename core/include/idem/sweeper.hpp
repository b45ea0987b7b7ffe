// Sweeps a service's store in the background, in bounded steps.
//
//   idem::Sweeper sweeper(service);   // until it goes out of scope
//
// Any number of sweepers, in any number of processes, are harmless to each other; the pauses are
// jittered, so that they do not meet. On a virtual clock it sweeps in the thread that advances it.
#pragma once

#include <cstdint>
#include <memory>

#include "idem/service.hpp"

namespace idem {

struct SweeperOptions {
  Duration every = std::chrono::seconds(30);  // give or take a fifth
  std::size_t limit = 500;                    // records a step: what the store is kept busy for
  std::size_t steps_max = 20;  // of a round; what is left then is taken up after a tenth of `every`
};

struct SweeperCounts {
  std::uint64_t rounds = 0;
  std::uint64_t steps = 0;
  std::uint64_t abandoned = 0;  // processing -> failed(abandoned)
  std::uint64_t expired = 0;    // removed
  std::uint64_t errors = 0;     // a step that failed ends its round; the observer is told, too
};

// Thread safe. Borrows the service; owns a thread of its own (none on a virtual clock).
class Sweeper {
 public:
  // Bad options throw Exception: a programming error, found at start.
  explicit Sweeper(IdempotencyService& service, SweeperOptions options = {});
  ~Sweeper();  // stop()
  Sweeper(const Sweeper&) = delete;
  Sweeper& operator=(const Sweeper&) = delete;

  // Waits for the step that runs, if any. Idempotent.
  void stop();

  [[nodiscard]] SweeperCounts counts() const;

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace idem
