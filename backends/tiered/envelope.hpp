// The envelope: what the front keeps as a record's "result" is the back's whole record, so that an
// answer from the front is the record the back holds, version and all.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "idem/record.hpp"

namespace idem::tiered {

struct Envelope {
  Record record;    // as the back held it
  Time back_now{};  // the back's time then
};

[[nodiscard]] std::string pack(const Record& record, Time back_now);

// nullopt: not an envelope (a marker that was set before the back was asked has none).
[[nodiscard]] std::optional<Envelope> unpack(std::string_view bytes);

}  // namespace idem::tiered
