// The files of page/ and the chart script, as they were when the program was built.
#pragma once

#include <string_view>

namespace idem::bench {

[[nodiscard]] std::string_view page_form() noexcept;
[[nodiscard]] std::string_view page_style() noexcept;
[[nodiscard]] std::string_view page_sort() noexcept;
[[nodiscard]] std::string_view page_script() noexcept;  // "" if there was none

}  // namespace idem::bench
