// Where a page of a listing ended, and its text.
#pragma once

#include <charconv>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace idem::memory {

// After the record of this key in the run of this order.
struct Cursor {
  std::size_t shard = 0;
  std::uint32_t order = 0;
  std::string after;  // storage name; empty: before the first of the run

  [[nodiscard]] std::string text() const {
    return std::to_string(shard) + "." + std::to_string(order) + "." + after;
  }
  [[nodiscard]] static std::optional<Cursor> parse(std::string_view text) {
    Cursor cursor;
    const char* const end = text.data() + text.size();
    const auto shard = std::from_chars(text.data(), end, cursor.shard);
    if (shard.ec != std::errc() || shard.ptr == end || *shard.ptr != '.') return std::nullopt;
    const auto order = std::from_chars(shard.ptr + 1, end, cursor.order);
    if (order.ec != std::errc() || order.ptr == end || *order.ptr != '.') return std::nullopt;
    cursor.after.assign(order.ptr + 1, end);
    return cursor;
  }
};

}  // namespace idem::memory
