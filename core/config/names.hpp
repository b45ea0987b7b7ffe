// The names of settings as the file nests them.
#pragma once

#include <optional>
#include <set>
#include <string>
#include <string_view>

namespace idem::config {

using Names = std::set<std::string, std::less<>>;

inline constexpr std::string_view kRoot = "idempotency";
inline constexpr std::string_view kBizTypes = "biz_types.";

// What may stand in a map: "" the root's names, "http." those of its section, "biz_types." those of
// any biz_type.
[[nodiscard]] const Names& names_under(std::string_view prefix);

// Whether a map stands there ("http").
[[nodiscard]] bool is_section(std::string_view name);

// As nearest(), but only one or two letters away.
[[nodiscard]] std::optional<std::string> nearest_slip(const std::string& word, const Names& among);

}  // namespace idem::config
