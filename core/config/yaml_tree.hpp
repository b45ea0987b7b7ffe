// A YAML text as a tree whose every node knows its place. Only what a configuration needs: maps,
// sequences and scalars; no aliases, anchors or tags, one document, few levels.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "idem/error.hpp"

namespace idem::config {

inline constexpr std::size_t kYamlBytesMax = std::size_t{1} << 20;  // larger is refused

struct Place {
  int line = 1;
  int column = 1;
};

struct Node {
  enum class Kind : std::uint8_t { nothing, scalar, sequence, map };
  Kind kind = Kind::nothing;
  Place place;
  std::string text;          // scalar
  bool quoted = false;       // scalar: in quotes or a block, so surely meant as text
  std::vector<Node> keys;    // map: scalars, no two alike
  std::vector<Node> values;  // map: one per key; sequence: the items
};

// The error's message starts with "name:line:column: error: ".
[[nodiscard]] result<Node> parse_yaml(std::string_view text, const std::string& name);

[[nodiscard]] std::string fault_at(const std::string& name, Place place, std::string_view what);

}  // namespace idem::config
