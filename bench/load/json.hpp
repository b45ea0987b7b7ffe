// The pieces that every document of idem.bench/1 is made of: figures unrounded, durations in
// nanoseconds, null where there is none.
#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <string_view>
#include <vector>

#include "idem/store.hpp"
#include "load/histogram.hpp"
#include "load/machine.hpp"
#include "load/statistics.hpp"

namespace idem::bench {

using Json = nlohmann::ordered_json;

inline constexpr const char* kReportSchema = "idem.bench/1";

// JSON knows no NaN; an absent figure is null, never 0.
[[nodiscard]] Json number(double value);
[[nodiscard]] Json optional_number(std::optional<Nanos> value);
// null without samples.
[[nodiscard]] Json to_json(const Summary& summary, const std::vector<double>& rounds);
[[nodiscard]] Json to_json(const Histogram& histogram);
[[nodiscard]] Json to_json(const Machine& machine);

[[nodiscard]] std::string_view to_string(Durability tier) noexcept;

// What is wrong with a document, in the reader's words, without its prefix "[json.exception...]".
[[nodiscard]] std::string_view words_of(const Json::exception& problem) noexcept;

}  // namespace idem::bench
