// The report as text for a terminal: made from the report alone, plain ASCII, no escape sequences.
#pragma once

#include <cstddef>
#include <string>

#include "load/report.hpp"

namespace idem::bench {

// What is measured on and how: printed before the start, too.
[[nodiscard]] std::string header_text(const Report& report, std::size_t width);

// The table, what was proved, void rows with their reasons, and warnings.
[[nodiscard]] std::string results_text(const Report& report, std::size_t width);

}  // namespace idem::bench
