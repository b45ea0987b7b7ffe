// tiered: a fast front before an authoritative back, over any two stores.
//
// The back always decides. The front refuses duplicates of a running attempt at once and replays
// finished ones, without asking the back; everything else goes to the back, and the front is told.
// Losing, flushing or lying stale, the front can cost a round trip or an InProgress that lasts
// until its marker's lease ends, never a second grant and never another result.
//
//   claim     front marker -> back -> business -> back -> front publishes the success
//   front     dead or slow: left alone for a while (the circuit), tried again within 2 s
//
// A memory front is a near cache of one process; a Redis front is shared.
#pragma once

#include "idem/backend.hpp"
#include "idem/clock.hpp"
#include "idem/store.hpp"

namespace idem {

struct TieredOptions {
  StorePtr front;
  StorePtr back;
  Clock* clock = nullptr;  // for the circuit; nullptr: system_clock(). Must outlive the store
  // How long a front that failed is left alone. At most 2 s.
  Duration circuit = std::chrono::milliseconds(500);
};

[[nodiscard]] result<StorePtr> make_tiered_store(TieredOptions options);

[[nodiscard]] Backend tiered_backend();

}  // namespace idem
