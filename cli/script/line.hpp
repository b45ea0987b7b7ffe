// One line of a scenario file. Every member that no operation asks for is a mistake and is told: a
// misspelt "expect" must not make a test that cannot fail.
#pragma once

#include <initializer_list>
#include <optional>
#include <set>
#include <string>
#include <string_view>

#include "failure.hpp"
#include "idem/store_url.hpp"
#include "render.hpp"

namespace idem::cli {

// More than any store takes; a size is a number in a text file, easily mistyped.
inline constexpr std::uint64_t kSizeMax = std::uint64_t{64} << 20;
// A Failure (usage) over kSizeMax.
void check_size(std::string_view name, std::uint64_t size);

// The same bytes for the same size, everywhere. `size`: at most kSizeMax.
[[nodiscard]] std::string pattern(std::uint64_t size);

class Line {
 public:
  // A Failure (usage) if it is not a JSON object, or names a member twice at any depth: JSON
  // libraries keep either one.
  [[nodiscard]] static Line parse(std::string_view text);
  explicit Line(Json object) : object_(std::move(object)) {}

  // Each marks the member as known; a member of another type is a Failure (usage).
  [[nodiscard]] bool has(std::string_view name);
  [[nodiscard]] std::string text(std::string_view name, std::string_view otherwise = {});
  [[nodiscard]] std::optional<std::uint64_t> number(std::string_view name);
  [[nodiscard]] bool flag(std::string_view name);
  [[nodiscard]] std::optional<Duration> duration(std::string_view name);
  // NAME, or NAME_hex, or NAME_size (that many bytes of a fixed pattern); more than one of them is
  // a Failure (usage).
  [[nodiscard]] std::optional<std::string> bytes(const std::string& name);
  [[nodiscard]] const Json* member(std::string_view name);
  // A Failure (usage) if more than one of them is there. Marks nothing.
  void at_most_one_of(std::initializer_list<std::string_view> names) const;

  // A Failure (usage) if a member was never asked for.
  void check_all_known() const;

 private:
  Json object_;
  std::set<std::string, std::less<>> known_;
};

}  // namespace idem::cli
