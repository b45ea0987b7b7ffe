// The sequence guard: events of one stream take effect in order, each at most once.
//
//   SequenceGuard guard(store);
//   const auto seen = guard.accept("order-9", 3);   // Applied, Duplicate, Stale or Gap
//
// A high-water mark per stream, moved by compare-and-swap. The mark is one record of the store (so
// an in-transaction store makes it commit with the business rows), under a business type of its
// own: it never meets an idempotency key.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>

#include "idem/store.hpp"

namespace idem {

struct SequenceOptions {
  std::string tenant;
  std::string biz_type = "idem.sequence";  // the marks of guards with different types never meet
  Duration keep = kDurationMax;            // a stream that is silent for so long is forgotten
  bool refuse_gaps = false;                // accept only newest + 1, and 1 as the first of a stream
};

// The mark was moved to this number: let the event take effect.
struct Applied {};
// This number is the newest seen: the event came before.
struct Duplicate {};
// A newer number was seen: the event is late.
struct Stale {
  std::uint64_t newest = 0;
};
// refuse_gaps: an earlier event is missing. Nothing changed.
struct Gap {
  std::uint64_t newest = 0;  // 0: the stream is new
};
using SequenceOutcome = std::variant<Applied, Duplicate, Stale, Gap>;

// Share freely between threads. Shares its store.
class SequenceGuard {
 public:
  explicit SequenceGuard(StorePtr store, SequenceOptions options = {});

  // Of any number of racing calls with one number exactly one is Applied. `stream` follows the
  // rules of a key (check_key). One or two round trips, more only when calls race.
  // unknown: the mark may have been moved; a repetition answers Duplicate then.
  [[nodiscard]] result<SequenceOutcome> accept(std::string_view stream, std::uint64_t seq);

  // The high-water mark; nullopt if the stream is new. Only reads.
  [[nodiscard]] result<std::optional<std::uint64_t>> newest(std::string_view stream);

 private:
  StorePtr store_;
  SequenceOptions options_;
};

}  // namespace idem
