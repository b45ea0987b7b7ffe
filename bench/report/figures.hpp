// Numbers of a document as text for people; "-" where there is none.
#pragma once

#include <string>

#include "load/json.hpp"

namespace idem::bench {

// The member at a dotted path: "rate.median"; null if any part of it is missing.
[[nodiscard]] const Json& at_path(const Json& from, std::string_view path);

[[nodiscard]] std::string text_figure(const Json& from, std::string_view path);   // as it is
[[nodiscard]] std::string rate_figure(const Json& from, std::string_view path);   // "41.2k"
[[nodiscard]] std::string time_figure(const Json& from, std::string_view path);   // "1.25ms"
[[nodiscard]] std::string count_figure(const Json& from, std::string_view path);  // "1234"
[[nodiscard]] std::string share_figure(const Json& from, std::string_view path);  // "1.2%"
[[nodiscard]] std::string ratio_figure(const Json& from, std::string_view path);  // "0.53x"
// "[9.1k, 10.4k]"
[[nodiscard]] std::string interval_figure(const Json& from, std::string_view path);

}  // namespace idem::bench
