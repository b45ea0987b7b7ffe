// Stores that break the one promise each is named for. A benchmark that does not notice them would
// praise a store for being fast at being wrong.
#pragma once

#include <atomic>
#include <cstdint>
#include <mutex>

#include "idem/clock.hpp"
#include "idem/testing/forwarding_store.hpp"

namespace idem::bench {

enum class Rig : std::uint8_t {
  honest,
  runs_twice,       // every 50th insert on a key that stands claims to have written
  replays_wrong,    // every 50th success that stands is answered with a byte changed
  loses_records,    // every 50th completed record is removed again
  fails_half,       // every second call is refused
  stalls,           // the 500th insert takes a second, and everybody waits for it
  slow,             // each insert takes 1 ms
  never_completes,  // every 50th complete is answered as written but is not
};

class RiggedStore final : public testing::ForwardingStore {
 public:
  RiggedStore(StorePtr behind, Rig rig, Clock& clock)
      : ForwardingStore(std::move(behind)), rig_(rig), clock_(clock) {}

  void insert(std::span<Insert> ops) override;
  void replace(std::span<Replace> ops) override;

 private:
  [[nodiscard]] bool every(std::uint64_t nth);

  const Rig rig_;
  Clock& clock_;
  std::atomic<std::uint64_t> turns_{0};
  std::mutex stall_;
};

}  // namespace idem::bench
