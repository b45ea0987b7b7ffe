// Numbers for people: three significant digits with an SI prefix or a unit of time.
#pragma once

#include <optional>
#include <string>

#include "load/stopwatch.hpp"

namespace idem::bench {

// 41234 "41.2k", 999.6 "1.00k", 0 "0", 2900000 "2.90M". Not negative.
[[nodiscard]] std::string si(double value);

// 412 "412ns", 1250 "1.25us", 98'700'000 "98.7ms"; nullopt "-".
[[nodiscard]] std::string duration_text(std::optional<Nanos> d);

// 0.0123 "1.2%"
[[nodiscard]] std::string percent(double share);

}  // namespace idem::bench
