// Drafts for the cases of StoreContract.
#pragma once

#include <chrono>
#include <string_view>

#include "idem/store.hpp"

namespace idem::conformance {

[[nodiscard]] inline Owner owner_of(std::uint8_t who) {
  Owner owner;
  owner.bytes.fill(who);
  return owner;
}

// A claim: 30 s of lease, kept for a day.
[[nodiscard]] inline Draft processing(std::uint8_t who = 1) {
  Draft draft;
  draft.request_hash = Fingerprint::of_bytes("request");
  draft.owner = owner_of(who);
  draft.lease = std::chrono::seconds(30);
  draft.keep = std::chrono::hours(24);
  return draft;
}

// What a complete writes over `held`. `result` is borrowed.
[[nodiscard]] inline Draft success(const Record& held, std::string_view result) {
  Draft draft;
  draft.request_hash = held.request_hash;
  draft.owner = held.owner;
  draft.fence = held.fence;
  draft.attempt = held.attempt;
  draft.status = Status::success;
  draft.fresh = false;
  draft.keep = std::chrono::hours(24);
  draft.result = result;
  return draft;
}

// What a renewal writes over `held`.
[[nodiscard]] inline Draft renewal(const Record& held) {
  Draft draft = processing();
  draft.request_hash = held.request_hash;
  draft.owner = held.owner;
  draft.fence = held.fence;
  draft.attempt = held.attempt;
  draft.fresh = false;
  return draft;
}

}  // namespace idem::conformance
