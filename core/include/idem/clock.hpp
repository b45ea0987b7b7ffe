// The one root of time. Everything that reads, waits for or schedules time takes a Clock.
//
// system_clock() is wall time that never goes back and does not jump while the process lives: the
// wall clock read once, plus CLOCK_BOOTTIME since then (so a suspended machine's leases do end).
// A VirtualClock moves only when told; nothing runs in the background then, advance() runs what is
// due in its caller.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>

#include "idem/time.hpp"

namespace idem {

// A queue of work to be done at given times, one piece after the other.
// Thread safe. The system clock's queue owns one thread, started by the first call_at.
class Timers {
 public:
  using Id = std::uint64_t;

  Timers() = default;
  Timers(const Timers&) = delete;
  Timers& operator=(const Timers&) = delete;
  // Drops what is not due yet and waits for what runs.
  virtual ~Timers() = default;

  // Runs `work` once `at` is reached; soon, if it is already past. `work` must not throw.
  // On a virtual clock work that is already due runs at once, in the caller.
  virtual Id call_at(Time at, std::function<void()> work) = 0;

  // After the return the work does not run any more, and is not running (unless called from it).
  // True if it never ran.
  virtual bool cancel(Id id) = 0;
};

class Clock {
 public:
  Clock() = default;
  Clock(const Clock&) = delete;
  Clock& operator=(const Clock&) = delete;
  virtual ~Clock() = default;

  // Never goes back. Thread safe, a few tens of nanoseconds.
  [[nodiscard]] virtual Time now() const noexcept = 0;

  [[nodiscard]] virtual std::unique_ptr<Timers> timers() = 0;

  // Lets `d` go by in the calling thread. A virtual clock is advanced by it.
  virtual void pause(Micros d) = 0;

  // How far this clock is from the machine's; stores whose server has its own clock add it, so that
  // one virtual clock drives every backend. Zero for the system clock.
  [[nodiscard]] virtual Micros offset() const noexcept = 0;
};

// The machine's clock; lives as long as the process.
[[nodiscard]] Clock& system_clock();

// A clock for tests. Thread safe: threads may wait on it while another one advances it.
class VirtualClock final : public Clock {
 public:
  explicit VirtualClock(Time start = kVirtualStart);
  ~VirtualClock() override;

  [[nodiscard]] Time now() const noexcept override;
  [[nodiscard]] std::unique_ptr<Timers> timers() override;
  void pause(Micros d) override { advance(d); }
  [[nodiscard]] Micros offset() const noexcept override;

  // Moves time forward and runs everything that falls due, in order of time, each at its own
  // instant, in the calling thread. Negative durations are ignored.
  void advance(Duration d);

 private:
  class Queue;
  struct State;
  std::shared_ptr<State> state_;
};

}  // namespace idem
