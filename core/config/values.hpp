// Values as people write them, with strict types. Errors do not name the setting: the caller does.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

#include "settings.hpp"

namespace idem::config {

[[nodiscard]] result<bool> to_bool(const Value& value);
[[nodiscard]] result<Duration> to_duration(const Value& value);       // "30s"
[[nodiscard]] result<Duration> to_seconds(const Value& value);        // 600
[[nodiscard]] result<std::uint64_t> to_count(const Value& value);     // 64, 1MiB; >= 1
[[nodiscard]] result<std::uint32_t> to_number(const Value& value);    // >= 1
[[nodiscard]] result<std::string> to_method(const Value& value);      // "PUT", "*"
[[nodiscard]] result<std::string> to_route_path(const Value& value);  // "/orders/*", "/public/**"
[[nodiscard]] std::string from_bytes(std::uint64_t count);
[[nodiscard]] inline std::string from_bool(bool value) { return value ? "true" : "false"; }

// The value one of a few words stands for; `words` has a pair for each.
template <class Word, std::size_t N>
[[nodiscard]] result<Word> to_word(const Value& value,
                                   const std::array<std::pair<std::string_view, Word>, N>& words) {
  std::string known;
  for (const auto& [name, word] : words) {
    if (value.text == name) return word;
    known.append(known.empty() ? "" : ", ").append(name);
  }
  return idem::fail(errc::invalid_argument, "'" + value.text + "' is none of " + known);
}

template <class Word, std::size_t N>
[[nodiscard]] std::string from_word(Word value,
                                    const std::array<std::pair<std::string_view, Word>, N>& words) {
  for (const auto& [name, word] : words) {
    if (word == value) return std::string(name);
  }
  return {};
}

inline constexpr std::array<std::pair<std::string_view, http::KeyUse>, 3> kKeyUses{
    {{"required", http::KeyUse::required},
     {"optional", http::KeyUse::optional},
     {"off", http::KeyUse::off}}};

}  // namespace idem::config
